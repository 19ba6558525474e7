"""Archives as stores: profiles are added to them, listed and removed."""
