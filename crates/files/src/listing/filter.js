
// Adds a field that hides the rows whose name doesn't contain each of its words.
(() => {
  const table = document.querySelector("table");
  const rows = [...table.tBodies[0].rows].filter((row) => row.cells[0].className !== "up");
  if (rows.length < 2) return;
  const names = rows.map((row) => row.querySelector("bdi").textContent.toLowerCase());
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = document.querySelector(".more") ? "Filter this page" : "Filter";
  field.ariaLabel = field.placeholder + " by name";
  const count = document.createElement("output");
  field.oninput = () => {
    const words = field.value.toLowerCase().split(/\s+/);
    let shown = 0;
    rows.forEach((row, place) => {
      row.hidden = !words.every((word) => names[place].includes(word));
      shown += !row.hidden;
    });
    count.textContent = shown === rows.length ? "" : shown + " of " + rows.length;
  };
  const line = document.createElement("div");
  line.className = "filter";
  line.append(field, count);
  table.before(line);
})();
