"""The worst step of a batch in the first plan, a bound, is no less than in the second, which looked at every set."""
import re
import sys


def worst(path):
    """Time of the worst step for 8 rows, and whether every set was looked at."""
    for line in open(path):
        if "plan.prediction step batch 8" in line:
            return float(re.search(r"worst (\S+)", line)[1]), line.rstrip().endswith("{exhaustive}")
    sys.exit(f"{path}: found no step for 8 rows")


bound, exact = (worst(path) for path in sys.argv[1:])
print("bound" if not bound[1] and exact[1] else f"found {bound} and {exact}, expected a bound and an exact time")
print("holds" if exact[0] <= bound[0] < 1.1 * exact[0] else f"{bound[0]} us beside {exact[0]}")
