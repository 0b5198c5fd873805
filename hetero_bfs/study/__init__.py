"""Tables and figures of the papers for this machine. Runs as `hetero-bfs study`.

`searches` selects the graphs. It makes the tables with `levels`, `efficiency` and `run`. `figures`
draws them in the style of `style`, and `findings` summarises them in sentences. `page` makes one
HTML page, and `folder` writes all files at once. `papers` names the papers of which a study shows
the own tables, such as `zhang`.
"""
