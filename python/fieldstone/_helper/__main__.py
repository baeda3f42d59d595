"""Serves requests on stdin until it ends: ``python -m fieldstone._helper``."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Moves the pipe away from fd 1, then answers requests one after another."""
    # Before any C library is loaded: fd 1 becomes stderr, and the frames keep the real pipe.
    pipe = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    # Before eccodes reads it, in this process or its children; see `grib.lay_out_by_eccodes`.
    os.environ.pop("ECCODES_ECKIT_GEO", None)

    from fieldstone._helper.frames import Channel, ProtocolError
    from fieldstone._helper.serve import answer

    with os.fdopen(0, "rb", closefd=False) as requests, os.fdopen(pipe, "wb") as replies:
        channel = Channel(requests, replies)
        try:
            while (frame := channel.receive()) is not None:
                answer(channel, *frame)
        except BrokenPipeError:
            # The parent is gone; drop the frames buffered for it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), pipe)
        except ProtocolError as error:
            channel.fail("Internal", f"bad request frame: {error}")
            return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
