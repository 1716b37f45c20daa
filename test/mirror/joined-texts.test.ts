import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bytesOf, type TextSlice } from '../../src/core/text-slice.js';
import { atOnce } from '../../src/core/turns.js';
import { type JoinedTexts, joinTexts } from '../../src/mirror/joined-texts.js';

/** What the starts and lengths say stands in the joined bytes. */
function found({ bytes, starts, lengths }: JoinedTexts): string[] {
  return starts.map((start, n) => bytes.toString('utf8', start - 1, start - 1 + lengths[n]!));
}

function whole(text: string): TextSlice {
  const source = Buffer.from(text);
  return { source, start: 0, end: source.length };
}

test('texts of one response are not copied', () => {
  const source = Buffer.from('{"data":[{"a":1},{"a":2}, {"a":3}]}');
  const texts = [
    { source, start: 9, end: 16 },
    { source, start: 17, end: 24 },
    { source, start: 26, end: 33 },
  ];
  const joined = atOnce(joinTexts(texts));
  expect(joined.bytes.toString()).toBe('{"a":1},{"a":2}, {"a":3}');
  expect(joined.bytes.buffer).toBe(source.buffer);
  expect(found(joined)).toEqual(['{"a":1}', '{"a":2}', '{"a":3}']);
});

test('whatever stands between texts, and whichever are left out, each is found where it is said to be', () => {
  // Slices of one response in any choice, and texts from elsewhere.
  const values = fc.array(
    fc.tuple(
      fc.jsonValue(),
      fc.constantFrom('slice', 'own', 'left out'),
      fc.constantFrom(',', ' , ', ',\n\t', `,${' '.repeat(20)}`),
    ),
  );
  fc.assert(
    fc.property(values, fc.boolean(), (items, isReversed) => {
      const written = items.map(([value]) => JSON.stringify(value));
      const source = Buffer.from(`[${written.map((text, n) => text + items[n]![2]).join('')}]`);
      let start = 1;
      const texts = items.flatMap(([, where, gap], n) => {
        const end = start + Buffer.byteLength(written[n]!);
        const slice = { source, start, end };
        start = end + gap.length;
        return where === 'left out' ? [] : [where === 'slice' ? slice : whole(written[n]!)];
      });
      if (isReversed) texts.reverse();
      expect(found(atOnce(joinTexts(texts)))).toEqual(texts.map((text) => bytesOf(text).toString()));
    }),
    { numRuns: 2_000 },
  );
});
