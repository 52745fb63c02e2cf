// Runs the cases of `status_cases.json` with the script of the status page: `node status_page.js PAGE CASES`.
"use strict";
const { readFileSync } = require("node:fs");
const vm = require("node:vm");

const page = readFileSync(process.argv[2], "utf8");
const cases = JSON.parse(readFileSync(process.argv[3], "utf8"));
const script = page.slice(page.indexOf("<script>") + 8, page.indexOf("</script>"));
const names = "health quantile formatQuantile formatRate formatBytes formatDuration formatPart formatAge formatLeft";
const functions = vm.runInNewContext(`${script}; ({ ${names.split(" ").join(", ")} })`);
const wrong = [];
let count = 0;

function expect(name, found, expected) {
  count += 1;
  if (found !== expected) wrong.push(`${name}: ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`);
}

for (const { name, now, expected } of cases.health) {
  const [old, fresh] = [structuredClone(cases.base), structuredClone(cases.base)];
  for (const [path, value] of Object.entries(now)) {
    const members = path.split(".");
    const last = members.pop();
    members.reduce((object, member) => object[member], fresh)[last] = value;
  }
  const found = functions.health([old, fresh]);
  for (const member of ["level", "first", "second"]) expect(`${name}, ${member}`, found[member], expected[member]);
  for (const [check, value] of Object.entries(expected.checks || {})) {
    expect(`${name}, ${check}`, (found.checks.find((one) => one.name === check) || {}).value, value);
  }
}
for (const { name, before, now, part, expected } of cases.quantiles) {
  const histogram = (buckets) => ({ buckets: buckets.map(([le, count]) => ({ le, count })) });
  const found = functions.quantile(histogram(before), histogram(now), part);
  expect(name, found === null ? null : functions.formatQuantile(found), expected);
}
const formats = { rate: "formatRate", bytes: "formatBytes", duration: "formatDuration", part: "formatPart", age: "formatAge", left: "formatLeft" };
for (const [kind, pairs] of Object.entries(cases.formats)) {
  for (const [value, expected] of pairs) expect(`${kind} ${value}`, functions[formats[kind]](value), expected);
}
console.log(wrong.length === 0 ? `${count} as expected` : wrong.join("\n"));
process.exitCode = wrong.length === 0 ? 0 : 1;
