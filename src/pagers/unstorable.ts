/** Why PostgreSQL could not keep a record's text as jsonb. One such record would otherwise fail its whole page. */
export type UnstorableReason = 'nul' | 'lone_surrogate' | 'number_out_of_range';

/**
 * numeric holds 131,072 digits before the point and 16,383 after it: exponents of five digits and numbers of more than 6,000 characters
 * are refused, which no real number has. Also matches inside strings.
 */
const LARGE_NUMBER = /[0-9][eE][+-]?0*[1-9][0-9]{4}|[0-9.]{6001}/;

/** Most digits that a record's exponents may add to its text, so that it can be read again: PostgreSQL writes 1e999 as a thousand digits. */
const MOST_DIGITS = 1_000_000;
const EXPONENT = /[0-9][eE][+-]?0*([0-9]{2,4})/g;

/** In JSON a backslash stands only in strings, so reading escapes one after the other tells `\u0000` from `\\u0000`. */
const ESCAPES = /\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([0-9a-fA-F]{4})|[^u])/g;

/** Exact look at the text of one record, which came as UTF-8 and is JSON. */
export function unstorableReason(text: string): UnstorableReason | undefined {
  for (const [, unit] of text.matchAll(ESCAPES)) {
    if (unit === '0000') return 'nul';
    if (unit !== undefined && /^[dD][89a-fA-F]/.test(unit)) return 'lone_surrogate';
  }
  const isOutOfRange = (json: string) => LARGE_NUMBER.test(json) || digitsOf(json) > MOST_DIGITS;
  return isOutOfRange(text) && isOutOfRange(withoutStrings(text)) ? 'number_out_of_range' : undefined;
}

/** Digits that the exponents of a text add to it. */
function digitsOf(json: string): number {
  let digits = 0;
  for (const [, exponent] of json.matchAll(EXPONENT)) digits += Number(exponent);
  return digits;
}

/** Escapes go first: one pattern for both overflows the stack on a long string. */
function withoutStrings(json: string): string {
  return json.replaceAll(/\\./g, '').replaceAll(/"[^"]*"/g, '');
}
