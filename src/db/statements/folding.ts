import { Prisma } from '../../generated/prisma/client.js';

// Folded texts are compared in searches of names: letter case and diacritics make no difference. TypeScript folds what a person types and PostgreSQL
// folds what is stored, both by these tables. PostgreSQL's own lower() is not used for other than ASCII letters: its result depends on the locale of the database.

/** Letters that Unicode does not decompose, and small letters of alphabets other than Latin. Both texts have the same length. */
const LETTERS = {
  from: 'ØøŁłĐđÐðĦħŦŧıÆŒẞÞŊς’ʼ‐–—ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩАБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯЂЄЅІЈЉЊЋЏ',
  to: "oollddddhhttiæœßþŋσ''---αβγδεζηθικλμνξοπρστυφχψωабвгдежзиклмнопрстуфхцчшщъыьэюяђєѕіјљњћџ",
} as const;

/** Letters that two letters replace, as people type them on other keyboards. */
const PAIRS = [
  ['æ', 'ae'],
  ['œ', 'oe'],
  ['ß', 'ss'],
  ['þ', 'th'],
] as const;

const MARKS = /[\u0300-\u036f]/g;

const SINGLE = new Map([...LETTERS.from].map((letter, at) => [letter, LETTERS.to[at]!] as const));

/** The text without letter case and diacritics: `Ørsted Straße` becomes `orsted strasse`. */
export function foldText(text: string): string {
  const plain = text
    .normalize('NFKD')
    .replace(MARKS, '')
    .replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  const single = [...plain].map((letter) => SINGLE.get(letter) ?? letter).join('');
  return PAIRS.reduce((result, [letter, pair]) => result.replaceAll(letter, pair), single);
}

/** SQL: the same of a column or value of type text. A text of ASCII letters alone, as most are, takes the short way. */
export function folded(text: Prisma.Sql): Prisma.Sql {
  const plain = Prisma.sql`lower(regexp_replace(normalize(${text}, NFKD), '[\\u0300-\\u036f]', '', 'g') COLLATE "C")`;
  const single = Prisma.sql`translate(${plain}, ${LETTERS.from}::text, ${LETTERS.to}::text)`;
  const whole = PAIRS.reduce((sql, [letter, pair]) => Prisma.sql`replace(${sql}, ${letter}::text, ${pair}::text)`, single);
  return Prisma.sql`CASE WHEN octet_length(${text}) = char_length(${text}) THEN lower(${text} COLLATE "C") ELSE ${whole} END`;
}
