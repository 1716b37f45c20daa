/** A text[] as PostgreSQL reads it. The driver's own way takes a microsecond an element. */
export function textArray(values: readonly string[]): string {
  return `{${values.map(quoted).join(',')}}`;
}

function quoted(value: string): string {
  return `"${value.replaceAll(/["\\]/g, '\\$&')}"`;
}

/** An array of numbers as PostgreSQL reads it. */
export function numberArray(values: readonly (number | null)[]): string {
  return `{${values.map((value) => value ?? 'NULL').join(',')}}`;
}
