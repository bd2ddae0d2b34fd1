"""Whether student code can be walled in on this machine: asked once, for all tests that run some."""

import pytest

from grading.grader.bubblewrap import no_walls

NO_WALLS = no_walls()
SANDBOXED = not NO_WALLS
needs_walls = pytest.mark.skipif(not SANDBOXED, reason=NO_WALLS or "there are walls")
