"""How long a visitor waits at the front page alone, as `bench_pages` measures it."""

from bench import bench_pages


def main() -> None:
    """Print the waits for its first picture and after each of its dials."""
    bench_pages.main(("/",))
