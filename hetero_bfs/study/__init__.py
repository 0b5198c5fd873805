"""The paper's tables and figures for this machine (Zhang et al. 2018). Runs as `hetero-bfs study`.

`plan` says which graphs, `measure`, `levels` and `power` make the tables, `figures` draws them in
the looks of `style`, `page` puts them on one HTML page, `folder` writes all of it at once.
"""

from hetero_bfs.study.plan import StudyOptions
from hetero_bfs.study.run import run_study

__all__ = ["StudyOptions", "run_study"]
