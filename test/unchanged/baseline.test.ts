import fc from 'fast-check';
import { expect, test } from 'vitest';
import { atOnce, ITEMS_A_TURN } from '../../src/core/turns.js';
import { KeyHashes } from '../../src/pagers/key-hashes.js';
import { Baseline } from '../../src/unchanged/baseline.js';
import { rowHashOf } from '../../src/unchanged/row-hashes.js';
import { portionsIn } from '../support/portions.js';

/** The row hashes of records with these texts. */
function rowsOf(texts: readonly string[]): Uint32Array {
  const rows = texts.map((text) => rowHashOf(Buffer.from(text)));
  return new Uint32Array(new Uint8Array(Buffer.concat(rows)).buffer);
}

/** A baseline whose pages held records with these texts. */
async function baselineOf(pages: readonly (readonly string[])[]): Promise<Baseline> {
  const received = pages.map((texts, n) => ({
    snapshotId: BigInt(n),
    keysId: BigInt(n),
    keys: KeyHashes.of(texts.map((_, at) => `${n}/${at}`)),
    chunks: new Uint32Array(),
  }));
  const baseline = new Baseline(received, undefined, async function* () {
    for (const texts of pages) yield rowsOf(texts);
  });
  await baseline.readRowHashes();
  return baseline;
}

const recordsOf = (texts: readonly string[]) => texts.map((text, position) => ({ position, text }));

test('records are unknown whose text no page held', async () => {
  const texts = fc.array(fc.nat(20_000).map(String), { maxLength: 50, size: 'max' });
  await fc.assert(
    fc.asyncProperty(fc.array(texts, { maxLength: 5 }), fc.nat(9_000), texts, async (pages, many, asked) => {
      const known = [...pages, Array.from({ length: many }, (_, n) => String(n))];
      const unknown = atOnce((await baselineOf(known)).unknownOf(recordsOf(asked), rowsOf(asked)));
      const held = new Set(known.flat());
      expect(unknown.map(({ text }) => text)).toEqual(asked.filter((text) => !held.has(text)));
    }),
    { numRuns: 20 },
  );
});

test('they are looked for in portions', async () => {
  const texts = (count: number) => Array.from({ length: count }, (_, n) => `x${n}`);
  const portions = async (known: number, asked: number) => {
    const baseline = await baselineOf([texts(known)]);
    const find = () => portionsIn(baseline.unknownOf(recordsOf(texts(asked)), rowsOf(texts(asked))));
    return [find(), find()];
  };
  expect(await portions(ITEMS_A_TURN, ITEMS_A_TURN)).toEqual([1, 1]);
  // The texts of the baseline are counted by parts, placed, and sorted part by part, once; then the records are looked for.
  expect(await portions(8 * ITEMS_A_TURN, 10 * ITEMS_A_TURN)).toEqual([1 + 7 + 7 + 7 + 9, 1 + 9]);
});
