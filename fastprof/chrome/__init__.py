"""Samples in Chrome's JSON, which several formats contain, and ids of its processes and threads."""
