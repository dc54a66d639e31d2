// What the charts need of plotly.js: lines and markers are part of its core.
// dashboard/static/README.md has the command that builds the bundle.

"use strict";

const Plotly = require("plotly.js/lib/core");

Plotly.register([require("plotly.js/lib/bar"), require("plotly.js/lib/heatmap")]);

module.exports = Plotly;
