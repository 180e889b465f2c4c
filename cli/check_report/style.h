// The style sheet of the page of `drun check`: light and dark, and printable.
#pragma once

namespace drun::cli {

// The heat colors can be told apart without seeing red and green: they go from a cool, light blue to a dark red, and
// the lightness changes with every step.
inline constexpr char kCheckStyle[] = R"css(
:root{color-scheme:light dark;--page:#f4f6f8;--card:#fff;--ink:#1a2129;--soft:#566270;--line:#dbe1e8;--faint:#eef1f5;
--ok:#1a7f45;--ok-back:#e3f4ea;--warn:#8a5700;--warn-back:#fff3d6;--bad:#b3202c;--bad-back:#fde8e9;--note:#215fb0;
--note-back:#e6effb;--accent:#1f5fc4;
--h0:#f1f3f6;--hb:#93c2e6;--hbt:#0e2b45;--h1:#cfe2f2;--h1t:#14314a;--h2:#fbe3a0;--h2t:#4a3500;--h3:#f2a14e;--h3t:#3d1d00;--h4:#c02a36;--h4t:#fff;
--h5:#33131b;--h5t:#fff;--kb:#4f90c4;--k1:#8fbadb;--k2:#d9a514;--k3:#e5842a;--k4:#c02a36;--k5:#33131b}
@media (prefers-color-scheme:dark){:root{--page:#12161b;--card:#1a2027;--ink:#e5eaf0;--soft:#9aa7b5;--line:#313a45;
--faint:#232b34;--ok:#63cf8f;--ok-back:#143222;--warn:#f1c35b;--warn-back:#392c0e;--bad:#ff8a91;--bad-back:#42181d;
--note:#86b8f7;--note-back:#15283f;--accent:#7fb0ff;
--h0:#222a33;--hb:#2f78a8;--hbt:#f0f8ff;--h1:#214560;--h1t:#dcedfa;--h2:#7d691d;--h2t:#fff4cf;--h3:#c06f1e;--h3t:#1d0d00;--h4:#d03643;--h4t:#fff;
--h5:#f3d9dc;--h5t:#40060d;--kb:#5fa3d3;--k1:#37688c;--k2:#c9a227;--k3:#ec8f37;--k4:#ff5d68;--k5:#f3d9dc}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",
sans-serif;-webkit-text-size-adjust:100%}
a{color:var(--accent);text-decoration-thickness:1px;text-underline-offset:2px}
main{max-width:1120px;margin:0 auto;padding:28px 20px 48px}
h1{font-size:26px;line-height:1.25;margin:0;letter-spacing:-.01em}
h2{font-size:18px;margin:0 0 4px}
h3{font-size:15px;margin:0}
p{margin:0}
.soft{color:var(--soft)}
.small{font-size:13px}
section{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:20px 22px;margin-top:16px}
section>h2+*{margin-top:10px}
header{display:flex;gap:16px;align-items:center;background:var(--card);border:1px solid var(--line);
border-left:6px solid var(--state);border-radius:10px;padding:20px 22px}
header .icon{flex:none;width:44px;height:44px;border-radius:50%;background:var(--state-back);color:var(--state);
display:grid;place-items:center;font-size:24px;font-weight:700}
.ok{--state:var(--ok);--state-back:var(--ok-back)}
.warn{--state:var(--warn);--state-back:var(--warn-back)}
.bad{--state:var(--bad);--state-back:var(--bad-back)}
.note{--state:var(--note);--state-back:var(--note-back)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(200px,1fr));gap:16px;margin-top:16px}
.tile{display:block;color:inherit;text-decoration:none;background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 18px}
.tile:hover{border-color:var(--accent)}
.tile b{display:block;font-size:24px;line-height:1.3;font-weight:650;letter-spacing:-.01em}
.badge{display:inline-block;background:var(--state-back);color:var(--state);border-radius:5px;padding:1px 8px;
font-size:13px;font-weight:600;white-space:nowrap}
.finding{border-left:4px solid var(--state);padding:2px 0 2px 14px;margin-top:16px}
.finding .head{display:flex;flex-wrap:wrap;gap:4px 10px;align-items:baseline}
.finding .code{font-size:12.5px;color:var(--soft);margin-left:auto}
.finding .code a{color:inherit}
.below{margin-top:12px}
.evidence{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(320px,100%),1fr));gap:12px 28px;margin-top:10px;align-items:start}
.evidence table{font-size:13.5px}
.evidence td,.evidence th{padding:4px 0}
.evidence td.num{padding-left:14px;white-space:normal}
.finding ul{margin:6px 0 0;padding-left:18px;color:var(--soft);font-size:13.5px}
code{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:13px}
pre{margin:8px 0 0;padding:8px 12px;background:var(--faint);border-radius:6px;white-space:pre-wrap;overflow-wrap:anywhere}
pre code::before{content:"$ ";color:var(--soft)}
p,li,dd,h3,summary,.why,.evidence td{overflow-wrap:anywhere}
.scroll{overflow-x:auto;background:linear-gradient(to right,var(--card) 40%,transparent) left/36px 100% no-repeat local,
linear-gradient(to left,var(--card) 40%,transparent) right/36px 100% no-repeat local,
linear-gradient(to right,var(--line),transparent) left/12px 100% no-repeat scroll,
linear-gradient(to left,var(--line),transparent) right/12px 100% no-repeat scroll}
.scroll.long{max-height:820px;overflow-y:auto}
.long th{position:sticky;top:0;background:var(--card)}
table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}
th{text-align:left;color:var(--soft);font-weight:600;font-size:12.5px;white-space:nowrap}
th,td{padding:7px 14px 7px 0;border-bottom:1px solid var(--line);vertical-align:top}
tr:last-child td{border-bottom:0}
td.num,th.num{text-align:right;white-space:nowrap}
td.none{color:var(--soft)}
td .why{display:block;color:var(--soft);font-size:13px;max-width:34em}
.pair{display:flex;flex-wrap:wrap;gap:16px}
.pair>section{flex:1 1 420px;min-width:0}
svg{display:block}
svg.map{margin:0 auto;max-width:100%;height:auto}
svg.plot{min-width:560px}
svg.topology{overflow:visible}
svg.plot,svg.topology{max-width:100%;height:auto;margin:0 auto}
svg text{fill:var(--ink);font-family:inherit}
svg.map{font-variant-numeric:tabular-nums}
.h0{fill:var(--h0)}.hb{fill:var(--hb)}.h1{fill:var(--h1)}.h2{fill:var(--h2)}.h3{fill:var(--h3)}.h4{fill:var(--h4)}.h5{fill:var(--h5)}
.d{fill:var(--card)}
svg text.l,svg text.n{fill:var(--soft)}
svg text.v.hb{fill:var(--hbt)}svg text.v.h1{fill:var(--h1t)}svg text.v.h2{fill:var(--h2t)}svg text.v.h3{fill:var(--h3t);font-weight:600}
svg text.v.h4{fill:var(--h4t);font-weight:700}svg text.v.h5{fill:var(--h5t);font-weight:700}
.m{fill:none;stroke-width:1.4}
.h2+.m{fill:var(--h2t)}.h3+.m{stroke:var(--h3t)}.h4+.m{stroke:var(--h4t)}.h5+.m{stroke:var(--h5t);stroke-width:2}
g:hover>.c{stroke:var(--ink);stroke-width:1.5}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:6px 18px;margin:14px 0 0;padding:0;color:var(--soft);font-size:13px}
.legend li{display:flex;align-items:center;gap:7px}
.letter{display:inline-grid;place-items:center;width:18px;height:18px;border-radius:3px;background:var(--faint);
border:1px solid var(--soft);color:var(--ink);font-size:11px}
.k{fill:none;stroke-linecap:round}
.k.hb{stroke:var(--kb);stroke-width:2;opacity:.8}.k.h1{stroke:var(--k1);stroke-width:1.5;opacity:.75}.k.h2{stroke:var(--k2);stroke-width:2}
.k.h3{stroke:var(--k3);stroke-width:3;stroke-dasharray:9 6}.k.h4{stroke:var(--k4);stroke-width:4.5}
.k.h5{stroke:var(--k5);stroke-width:2.5;stroke-dasharray:1 6}
.many .k.hb{stroke-width:.9;opacity:.5}.many .k.h1{stroke-width:.6;opacity:.4}.many .k.h2{stroke-width:.8;opacity:.45}.many .k.h3{stroke-width:1.6}
.many .k.h4{stroke-width:2.2}
.links .k:hover{stroke:var(--ink);opacity:1}
.host circle{fill:var(--state);stroke:var(--card);stroke-width:2}
.host.warn circle:not(.halo){fill:#d99a1c}
.host circle.halo{fill:none;stroke:var(--state);stroke-width:2}
.host.warn .halo{stroke:#d99a1c}
.host.bad .halo{stroke-dasharray:4 3}
.host.warn text,.host.bad text{font-weight:700}
.host text.sign{fill:var(--card);font-weight:800}
.net rect{fill:var(--faint);stroke:var(--soft)}
.plate{fill:var(--card);opacity:.92}
svg text.rate{font-size:12.5px;font-weight:600}
.plot{font-size:12.5px}
.grid line{stroke:var(--line)}
.plot .grid text{fill:var(--soft)}
.plot .axis text{fill:var(--soft);font-weight:600}
.curve{fill:none;stroke-linejoin:round}
.curve.used{stroke:var(--accent);stroke-width:3}
.curve.ring{stroke:var(--k3);stroke-width:2;stroke-dasharray:7 5}
.curve.tree{stroke:var(--ok);stroke-width:2;stroke-dasharray:2 4;stroke-linecap:round}
.spot{fill:var(--accent);fill-opacity:0}.spot:hover{fill-opacity:.3}
line.asked{stroke:var(--ink);stroke-dasharray:3 4;opacity:.55}
circle.asked{fill:var(--card);stroke:var(--accent);stroke-width:3}
svg text.asked{font-weight:700;font-size:14px;paint-order:stroke;stroke:var(--card);stroke-width:5px;stroke-linejoin:round}
details{margin-top:12px}
summary{cursor:pointer;font-weight:600}
#notes details{margin:0}
#notes summary h2{display:inline;margin-right:10px}
#notes summary span{font-weight:400}
dl{margin:0;font-size:14px;columns:2 380px;column-gap:36px}
dl>div{break-inside:avoid;padding-bottom:12px}
dt{font-weight:600}
dd code{white-space:nowrap}
dd{margin:2px 0 0;color:var(--soft)}
dt:target{background:var(--note-back)}
footer{margin-top:20px;color:var(--soft);font-size:13px}
@media(max-width:600px){main{padding:12px 10px 32px}section,header{padding:16px 14px}.tiles{gap:0;margin-top:10px;background:var(--card);border:1px solid var(--line);border-radius:10px;overflow:hidden}
.tile{border:0;border-radius:0;padding:10px 14px;display:grid;grid-template-columns:1fr auto;align-items:baseline}
.tile+.tile{border-top:1px solid var(--line)}.tile b{font-size:19px}.tile b+span{grid-column:1/3}
svg.plot{min-width:0;overflow:visible;font-size:21px}.plot .axis .up{display:none}.plot .grid text,.plot .axis text{font-size:18px}svg text.asked{font-size:23px}

section,.pair{margin-top:10px}.pair{gap:0}.pair>section{flex-basis:100%}
.rows,.rows tbody,.rows tr,.rows td{display:block}.rows thead{display:none}.scroll.long{max-height:none}
.rows tr{padding:8px 0;border-bottom:1px solid var(--line)}.rows tr:last-child{border-bottom:0}
.rows td,.rows td.num{display:flex;justify-content:space-between;gap:16px;padding:2px 0;border:0;text-align:right;white-space:normal}
.rows td:first-child{justify-content:flex-start;padding-bottom:4px}.rows td:first-child::before{display:none}
.rows td:first-child>span{display:flex;gap:8px;align-items:baseline}.rows td.none{display:none}.rows td.none{color:var(--soft)}
td .why{max-width:none}
.rows td::before{content:attr(data-title);color:var(--soft);font-size:13px;flex:none}}
@media print{body{background:#fff}.scroll.long{max-height:none}section,header,.tile{break-inside:avoid}
details::details-content{content-visibility:visible;block-size:auto}}
)css";

}  // namespace drun::cli
