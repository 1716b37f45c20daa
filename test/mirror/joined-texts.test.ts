import fc from 'fast-check';
import { expect, test } from 'vitest';
import { joinTexts } from '../../src/mirror/joined-texts.js';

/** What the starts and lengths say stands in the joined bytes. */
function found({ bytes, starts, lengths }: ReturnType<typeof joinTexts>): string[] {
  return starts.map((start, n) => bytes.toString('utf8', start - 1, start - 1 + lengths[n]!));
}

/** In memory of its own, as a response of a usual size. */
function large(text: string): Buffer {
  const buffer = Buffer.alloc(Buffer.poolSize + 20_000);
  return buffer.subarray(0, buffer.write(text));
}

test('texts of one response are not copied', () => {
  const response = large('{"data":[{"a":1},{"a":2}, {"a":3}]}');
  const joined = joinTexts([response.subarray(9, 16), response.subarray(17, 24), response.subarray(26, 33)]);
  expect(joined.bytes.toString()).toBe('[{"a":1},{"a":2}, {"a":3}]');
  expect(joined.bytes.buffer).toBe(response.buffer);
  expect(found(joined)).toEqual(['{"a":1}', '{"a":2}', '{"a":3}']);
});

test('whatever stands between texts that were left out, the array has those that were not', () => {
  // Slices of one text in any choice, and texts of their own, which share their memory with whatever else is small.
  const values = fc.array(
    fc.tuple(fc.jsonValue(), fc.constantFrom('slice', 'own', 'left out'), fc.constantFrom(',', ' , ', ',\n\t')),
  );
  fc.assert(
    fc.property(values, fc.constantFrom('[', ' ', ''), fc.constantFrom(']', ' ', ''), (items, open, close) => {
      const written = items.map(([value]) => JSON.stringify(value));
      const response = large(open + written.map((text, n) => text + (items[n]![2] ?? '')).join('') + close);
      let at = open.length;
      const texts = items.flatMap(([, where, gap], n) => {
        const length = Buffer.byteLength(written[n]!);
        const slice = response.subarray(at, at + length);
        at += length + gap.length;
        return where === 'left out' ? [] : [where === 'slice' ? slice : Buffer.from(written[n]!)];
      });
      const joined = joinTexts(texts);
      const kept = texts.map(String);
      expect(JSON.parse(joined.bytes.toString())).toEqual(kept.map((text) => JSON.parse(text) as unknown));
      expect(found(joined)).toEqual(kept);
    }),
    { numRuns: 2_000 },
  );
});
