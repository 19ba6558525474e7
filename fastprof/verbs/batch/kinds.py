"""The options of a batch, and values that only they take."""

from fastprof.core._typing import Any, T
from fastprof.core.options import Kind, Option, Whole


class BatchOption(Option[T]):
    group = "batch"


class Seconds(Kind):
    """A time in seconds, more than 0."""

    metavar = "S"
    typed = "float"

    def check(self, value: Any) -> Any:
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value <= 1e9:
            raise ValueError(f"{value!r:.80} is not a number of seconds above 0 and up to 1e9")
        return value

    def parse(self, text: str) -> Any:
        try:
            value: Any = float(text)
        except ValueError:
            value = text
        return self.check(value)


class Shard(Kind):
    """(number, total), or text I/N: 1/8 is the first of eight."""

    metavar = "I/N"
    typed = "Sequence[int]"

    def check(self, value: Any) -> Any:
        if not isinstance(value, (list, tuple)) or len(value) != 2:
            raise ValueError(f"{value!r:.80} is not a shard such as 1/8, the first of eight")
        number, of = (Whole(1, 1 << 20).check(one) for one in value)
        if number > of:
            raise ValueError(f"{number}/{of} is not a shard: I goes from 1 to {of}")
        return number, of

    def parse(self, text: str) -> Any:
        number, _, of = text.partition("/")
        return self.check((int(number), int(of)) if number.isdecimal() and of.isdecimal() else text)
