/* Charts, drawn as SVG. Each has a text alternative. */

export { bars } from "./chart/bars.js";
export { lineChart } from "./chart/line.js";
export { sparkline } from "./chart/spark.js";
export { stack } from "./chart/stack.js";
