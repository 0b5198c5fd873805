"""The paper's tables and figures for this machine (Zhang et al. 2018). Runs as `hetero-bfs study`.

`searches` selects the graphs. It makes the tables with `levels`, `efficiency` and `run`. `figures`
draws them in the style of `style`, and `findings` summarises them in sentences. `page` makes one
HTML page, and `folder` writes all files at once.
"""

from hetero_bfs.study.run import run_study
from hetero_bfs.study.searches import StudyOptions

__all__ = ["StudyOptions", "run_study"]
