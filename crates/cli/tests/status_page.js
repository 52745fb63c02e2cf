// Runs the cases of `status_cases.json` with the script of the status page: `node status_page.js PAGE CASES`.
"use strict";
const { readFileSync } = require("node:fs");
const vm = require("node:vm");

const page = readFileSync(process.argv[2], "utf8");
const cases = JSON.parse(readFileSync(process.argv[3], "utf8"));
const script = page.slice(page.indexOf("<script>") + 8, page.indexOf("</script>"));
const names = "formatPercentile formatRate formatBytes formatDuration formatPart formatAge";
const functions = vm.runInNewContext(`${script}; ({ ${names.split(" ").join(", ")} })`);
const wrong = [];
let count = 0;

for (const [kind, pairs] of Object.entries(cases.formats)) {
  for (const [value, expected] of pairs) {
    const found = functions["format" + kind[0].toUpperCase() + kind.slice(1)](value);
    count += 1;
    if (found !== expected) wrong.push(`${kind} ${JSON.stringify(value)}: ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`);
  }
}
console.log(wrong.length === 0 ? `${count} as expected` : wrong.join("\n"));
process.exitCode = wrong.length === 0 ? 0 : 1;
