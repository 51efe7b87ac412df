// The status page's script in a browser that is three functions large: prints what it shows.
const fs = require("fs");
const [page, documents] = process.argv.slice(2).map(name => fs.readFileSync(name, "utf8"));
const known = JSON.parse(documents);
const element = () => ({ textContent: "", className: "", children: [],
  append(child) { this.children.push(child); },
  replaceChildren(...children) { this.children = children; } });
const elements = {};
globalThis.document = { title: "", hidden: false,
  getElementById: id => elements[id] ??= element(), createElement: element };
globalThis.fetch = async path => ({ ok: path in known, status: 404, json: async () => known[path] });
let refreshes = 0;
globalThis.setTimeout = () => { refreshes += 1; };
eval(page.match(/<script>([^]*)<\/script>/)[1]);
setImmediate(() => setImmediate(() => {
  const rows = id => document.getElementById(id).children.map(row => row.children.map(cell => cell.textContent));
  const text = id => document.getElementById(id).textContent;
  process.stdout.write(JSON.stringify({ title: text("title"), summary: text("summary"),
    notes: text("notes"), refreshed: text("refreshed"), egress: rows("egress"),
    members: rows("members"), refreshes }));
}));
