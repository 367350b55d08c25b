"""``python -m hms_cache.cli …``, and the script to pass to spark-submit.

``spark-submit --py-files WHEEL …/hms_cache/cli/__main__.py jobs NAME …``
"""

from hms_cache.cli.main import main

if __name__ == "__main__":
    main()
