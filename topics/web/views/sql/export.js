/* A result as text: CSV as spreadsheets read it, and JSON with an object a row. */

export function asCsv({ columns, rows }) {
  const lines = [columns.map((column) => column.name), ...rows];
  return lines.map((line) => line.map(field).join(",")).join("\r\n") + "\r\n";
}

export function asJson({ columns, rows }) {
  return JSON.stringify(rows.map((row) => Object.fromEntries(columns.map(({ name }, at) => [name, row[at]]))), null, 2);
}

/* A value in a line. */
export function asText(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function field(value) {
  if (value === null) return "";
  const text = asText(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
