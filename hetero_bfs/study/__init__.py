"""The paper's tables and figures for this machine (Zhang et al. 2018). Runs as `hetero-bfs study`.

`plan` selects the graphs. `searches`, `levels`, `choices` and `efficiency` make the tables.
`figures` and `choice_figures` draw them in the style of `style`, and `findings` summarises them in
sentences. `page` makes one HTML page, and `folder` writes all files at once.
"""

from hetero_bfs.study.plan import StudyOptions
from hetero_bfs.study.run import run_study

__all__ = ["StudyOptions", "run_study"]
