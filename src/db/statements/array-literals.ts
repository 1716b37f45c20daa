import { atOnce, portionsOf } from '../../core/turns.js';

/** A text[] as PostgreSQL reads it. The driver's own way takes a microsecond an element. */
export function textArray(values: readonly string[]): string {
  return atOnce(textArrayInPortions(values));
}

/** `textArray`, which makes its text in portions. */
export function textArrayInPortions(values: readonly string[]): Generator<void, string> {
  return arrayOf(values, quoted);
}

function quoted(value: string): string {
  return `"${value.replaceAll(/["\\]/g, '\\$&')}"`;
}

/** An array of numbers as PostgreSQL reads it. */
export function numberArray(values: readonly (number | null)[]): string {
  return atOnce(numberArrayInPortions(values));
}

/** `numberArray`, which makes its text in portions. */
export function numberArrayInPortions(values: readonly (number | null)[]): Generator<void, string> {
  return arrayOf(values, (value) => value ?? 'NULL');
}

function* arrayOf<T>(values: readonly T[], textOf: (value: T) => string | number): Generator<void, string> {
  const parts: string[] = [];
  for (const portion of portionsOf(values)) {
    if (parts.length > 0) yield;
    parts.push(portion.map(textOf).join(','));
  }
  return `{${parts.join(',')}}`;
}
