"""The style sheet of the pages: light and dark, narrow and wide, screen and paper."""

from __future__ import annotations

from agent.render import svg

STYLE = f"""
:root {{ color-scheme: light dark; --ink: #1c2128; --soft: #57606a; --line: #d0d7de;
  --ground: #ffffff; --panel: #f6f8fa; --accent: #0a58ca; --warn: #9a4d00; --warn-ground: #fff4e0;
  --cost: #b03a06; --saving: #1f7a49; }}
@media (prefers-color-scheme: dark) {{
:root {{ --ink: #e6edf3; --soft: #9aa4af; --line: #30363d; --ground: #0d1117; --panel: #161b22;
  --accent: #6cb0ff; --warn: #f0b76b; --warn-ground: #2b2112; --cost: #ff9a6a; --saving: #5fce98; }}
}}
* {{ box-sizing: border-box; }}
body {{ margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }}
main {{ max-width: 1180px; margin: 0 auto; padding: 20px 24px 64px; }}
h1 {{ font-size: 1.45rem; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.1rem; margin: 32px 0 10px; }}
h3 {{ font-size: 1rem; margin: 16px 0 6px; }}
h2, h3 {{ overflow-wrap: anywhere; }}
p {{ margin: 6px 0; overflow-wrap: anywhere; }}
.lead {{ font-size: 1.1rem; }}
.soft {{ color: var(--soft); }}
.note {{ background: var(--warn-ground); border-left: 4px solid var(--warn); border-radius: 4px;
  padding: 8px 12px; margin: 8px 0; overflow-wrap: anywhere; }}
.note b {{ color: var(--warn); }}
.tiles {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px;
  margin: 16px 0; padding: 0; }}
.tiles div {{ background: var(--panel); border: 1px solid var(--line); border-radius: 8px;
  padding: 10px 14px; }}
.tiles dt {{ color: var(--soft); font-size: .82rem; }}
.tiles dd {{ margin: 2px 0 0; font-size: 1.25rem; font-weight: 600;
  font-variant-numeric: tabular-nums; }}
.tiles dd + dd {{ font-size: .82rem; font-weight: 400; color: var(--soft); }}
.scroll {{ overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
caption {{ position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }}
th, td {{ padding: 5px 10px; text-align: left; vertical-align: top; white-space: nowrap; }}
thead th {{ background: var(--panel); border-bottom: 1px solid var(--line); padding: 0;
  text-align: right; }}
tbody + tbody td, tr.detail td {{ border-top: 1px solid var(--line); }}
thead th.left {{ text-align: left; }}
td.n {{ text-align: right; }}
td.total {{ font-weight: 600; }}
table.plain thead th {{ padding: 7px 10px; }}
tbody th {{ font-weight: 400; color: var(--soft); }}
td.wrap {{ white-space: normal; overflow-wrap: anywhere; min-width: 140px; }}
table.plain tr + tr > * {{ border-top: 1px solid var(--line); }}
tr.detail > td {{ background: var(--panel); white-space: normal; padding: 12px 14px; }}
tr.detail > td > * {{ position: sticky; left: 14px; max-width: min(1090px, 100vw - 60px); }}
tr.detail tr.detail > td > * {{ max-width: min(1060px, 100vw - 96px); }}
td.name code {{ word-break: break-all; }}
tr.detail .scroll {{ background: var(--ground); }}
tr.detail[hidden] {{ display: none; }}
button {{ font: inherit; color: inherit; background: none; border: 0; cursor: pointer;
  border-radius: 4px; }}
button.sort {{ width: 100%; text-align: inherit; padding: 7px 10px; font-weight: 600;
  font-size: .86rem; }}
button.sort:hover, button.toggle:hover {{ color: var(--accent); }}
th[aria-sort="descending"] button::after {{ content: " \\2193"; }}
th[aria-sort="ascending"] button::after {{ content: " \\2191"; }}
button.toggle {{ padding: 0; text-align: left; }}
button.toggle::before {{ content: "\\25B8"; display: inline-block; width: 1.1em;
  color: var(--soft); }}
button.toggle[aria-expanded="true"]::before {{ content: "\\25BE"; }}
button.every {{ display: none; border: 1px solid var(--line); padding: 3px 10px;
  margin-bottom: 8px; font-size: .86rem; }}
.live button.every {{ display: inline-block; }}
:focus-visible {{ outline: 2px solid var(--accent); outline-offset: 1px; }}
code, pre {{ font: 12.5px/1.45 ui-monospace, "DejaVu Sans Mono", Menlo, monospace; }}
code {{ overflow-wrap: anywhere; white-space: pre-wrap; }}
pre {{ margin: 6px 0; padding: 8px 10px; background: var(--ground); border-radius: 6px;
  border: 1px solid var(--line); overflow-x: auto; }}
td.name {{ white-space: normal; min-width: 260px; }}
.tag {{ display: inline-block; border: 1px solid var(--line); border-radius: 999px;
  padding: 0 8px; font-size: .8rem; color: var(--soft); }}
.up {{ color: var(--cost); }}
.down {{ color: var(--saving); }}
ul.plain {{ list-style: none; padding: 0; margin: 6px 0; }}
ul.plain li {{ margin: 4px 0; overflow-wrap: anywhere; }}
figure {{ margin: 0; }}
figure svg {{ max-width: 100%; height: auto; }}
figure .slim {{ display: none; }}
a {{ color: var(--accent); }}
footer {{ margin-top: 36px; color: var(--soft); font-size: .86rem; overflow-wrap: anywhere; }}
@media (max-width: 640px) {{
main {{ padding: 14px 12px 48px; }}
figure .broad {{ display: none; }}
figure .slim {{ display: block; }}
.tiles {{ grid-template-columns: 1fr 1fr; }}
td.name {{ min-width: 200px; }}
}}
@media print {{
:root {{ color-scheme: light; --ink: #000; --soft: #444; --line: #bbb; --ground: #fff;
  --panel: #fff; --warn: #663300; --warn-ground: #fff; --cost: #000; --saving: #000; }}
main {{ max-width: none; padding: 0; }}
body {{ font-size: 10.5pt; }}
.live button.every {{ display: none; }}
.scroll {{ overflow: visible; border: 0; }}
thead {{ display: table-header-group; }}
tr, figure {{ break-inside: avoid; }}
button.toggle::before, button.toggle[aria-expanded]::before {{ content: ""; width: 0; }}
}}
{svg.STYLE}
@media print {{ .waterfall text {{ fill: #000; }} }}
"""
