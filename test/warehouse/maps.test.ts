import { expect, test } from 'vitest';
import { isMap } from '../../src/warehouse/maps.js';

/** Objects of which each has `each` keys, all of them other than those of the others if they are fresh. */
function seen(names: readonly string[], { objects = 1_000, times = objects }: { objects?: number; times?: number } = {}) {
  return { objects, keys: names.map((name) => ({ name, times })), total: names.length };
}
const many = (count: number, name: (n: number) => string) => Array.from({ length: count }, (_, n) => name(n));
const two = (n: number) => String(n).padStart(2, '0');
const guid = (n: number) => `9a27e5b0-d3f8-4169-b54a-2c60f98e${String(7000 + n)}`;

test.each<[string, readonly string[]]>([
  ['days', many(12, (n) => `2024-01-${two(n + 1)}`)],
  ['days as written in Norway', many(12, (n) => `${two(n + 1)}.01.2024`)],
  ['moments', many(12, (n) => `2024-01-${two(n + 1)}T08:00:00Z`)],
  ['months', many(12, (n) => `2024-${two(n + 1)}`)],
  ['names of months', ['Jan 2024', 'February 2024', 'Mar-24', 'april2024', '2024 May']],
  ['weeks', many(52, (n) => `2024-W${two(n + 1)}`)],
  ['quarters', ['Q1 2024', 'Q2 2024', '2024-Q3', '2024Q4']],
  ['years', ['2022', '2023', '2024']],
  ['numbers', many(5, (n) => String(n))],
  ['negative numbers and decimals', ['1.5', '2,25', '10']],
  ['numbers as ids, some with a sign', many(30, (n) => `#${n}`)],
  ['GUIDs', many(3, guid)],
  ['GUIDs without hyphens', many(3, (n) => guid(n).replaceAll('-', ''))],
  ['GUIDs in capitals and braces', many(3, (n) => `{${guid(n).toUpperCase()}}`)],
  ['ULIDs', ['01ARZ3NDEKTSV4RRFFQ69G5FAV', '01BX5ZZKBKACTAV9WEVGEMMVRZ', '01BX5ZZKBKACTAV9WEVGEMMVS0']],
  ['e-mail addresses', ['ada@example.com', 'bo@example.com', 'c.d@example.co.uk']],
  ['phone numbers', ['+47 22 33 44 55', '(555) 123-4567', '0047-22334455']],
  ['ids with a word', many(20, (n) => `emp_${1234 + n}`)],
  ['ids with a word and no sign', many(20, (n) => `EMP0${100 + n}`)],
  ['ids of a database', many(20, (n) => `64f1c0ffee0ddba11c0ffee${n % 10}`)],
  ['ids that begin with what they are', many(20, (n) => `cus_9s6XKzkNRiz8i${n}`)],
  ['values with one name among them', [...many(12, (n) => `2024-${two(n + 1)}`), 'total']],
  ['more keys than an ordinary object has', many(500, (n) => `field ${'x'.repeat(n)}`)],
])('%s are a map', (_name, names) => {
  expect(isMap(seen(names))).toBe(true);
});

test.each<[string, readonly string[]]>([
  ['words', ['street', 'city', 'zip']],
  ['lines', ['address1', 'address2', 'line1', 'line2', 'line3']],
  ["fields of one's own", many(60, (n) => `customField${n + 1}`)],
  ['languages', ['nb-NO', 'en-US', 'sv', 'de-CH', 'zh-Hans-CN']],
  ['days of the week', ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday']],
  ['months without a year', ['jan', 'feb', 'mar', 'apr', 'may', 'june']],
  ['quarters without a year', ['Q1', 'Q2', 'Q3', 'Q4']],
  ['two years', ['2023', '2024']],
  ['names and a few numbers', ['name', '1', '2', '3', 'city']],
  ['forms', ['form1040', 'form1099', 'w2']],
  ['names that begin with a number', ['2fa', '401k', '3rdParty', '1on1']],
  ['letters and digits', ['h1', 'h2', 'o365', 'sha256', 'utf8']],
  ['many members', many(300, (n) => `Member ${String.fromCodePoint(97 + (n % 26))}${'y'.repeat(n % 12)}`)],
  ['currencies', ['NOK', 'EUR', 'USD', 'GBP']],
])('%s are none', (_name, names) => {
  expect(isMap(seen(names))).toBe(false);
});

test('names that are new in every record are a map, those that few records have are none', () => {
  const names = (count: number) => many(count, (n) => `Name ${String.fromCodePoint(97 + (n % 26))}${'z'.repeat(n / 26)}`);
  expect(isMap(seen(names(20), { objects: 20, times: 1 }))).toBe(true);
  expect(isMap(seen(names(19), { objects: 20, times: 1 }))).toBe(false);
  expect(isMap(seen(names(100), { objects: 1_000, times: 50 }))).toBe(true);
  expect(isMap(seen(names(100), { objects: 1_000, times: 51 }))).toBe(false);
  const stable = names(10).map((name) => ({ name: `always ${name}`, times: 1_000 }));
  const rare = names(60).map((name) => ({ name, times: 3 }));
  expect(isMap({ objects: 1_000, keys: [...stable, ...rare], total: 70 })).toBe(false);
});
