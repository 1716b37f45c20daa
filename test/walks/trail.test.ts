import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KeyHashes, type PageHashes, TextHashes } from '../../src/pagers/hashes.js';
import { ReceivedKeys } from '../../src/walks/pass-memory.js';
import { type PageEnds, trailOf } from '../../src/walks/trail.js';

/** Records as `key/text`. */
type Records = readonly string[];

function pageOf(records: Records): PageHashes {
  const texts = records.map((record) => Number(record.split('/')[1]));
  // One run of records, whose hash is another for each page of other texts.
  const run = texts.length === 0 ? [] : [texts.reduce((sum, text) => 31 * sum + text, 1_000 + texts.length)];
  return {
    keys: KeyHashes.of(records.map((record) => record.split('/')[0]!)),
    texts: new TextHashes(records.length, Uint32Array.from([...texts, ...run].flatMap((text) => [text, 0, 1]))),
  };
}

function endsOf(page: PageHashes): PageEnds {
  const [firstKey, lastKey] = [page.keys.words.slice(0, 2), page.keys.words.slice(-2)];
  return { content: page, firstKey: Buffer.from(firstKey.buffer), lastKey: Buffer.from(lastKey.buffer) };
}

/** Adds the page as a pass does, and gives all that a pass may ask of the memory. */
function receive(memory: ReceivedKeys, page: PageHashes) {
  if (!memory.isOnTrail(page)) memory.leaveTrail();
  const [any, all] = [memory.hasAny(page.keys), memory.hasAll(page.keys)];
  const fits = memory.agreesWith(page);
  const joined = memory.follow(page);
  const known: number[] = [];
  for (let n = 0; n < page.keys.length; n += 1) {
    const isKnown = joined === undefined ? memory.add(page, n) !== 'new' : n < joined;
    if (isKnown) known.push(n);
  }
  return { any, all, fits, known, size: memory.size, isSteady: memory.isSteady };
}

function digestOf(memory: ReceivedKeys): string {
  if (!memory.isOnTrail(undefined)) memory.leaveTrail();
  return memory.digest;
}

function memoryOf(pages: readonly PageHashes[]): ReceivedKeys {
  const memory = new ReceivedKeys();
  for (const page of pages) receive(memory, page);
  return memory;
}

const trailOfPages = (pages: readonly PageHashes[]) => trailOf(pages.map(endsOf), digestOf(memoryOf(pages)));

/** A list cut into pages, each of which begins with the record that the one before ended with, but for some. */
const LIST = fc
  .tuple(fc.array(fc.nat(4), { maxLength: 6 }), fc.array(fc.boolean(), { minLength: 6, maxLength: 6 }))
  .map(([lengths, joins]) => {
    let next = 0;
    return lengths.map((length, n): Records => {
      const from = n > 0 && joins[n] && next > 0 ? next - 1 : next;
      next = from + length;
      return Array.from({ length }, (_, index) => `${from + index}/0`);
    });
  });

test('says what looking every key up says, whatever comes instead of its pages', () => {
  const STEP = fc.oneof(
    { weight: 6, arbitrary: fc.constant('as it was' as const) },
    fc.constantFrom('other texts' as const, 'left out' as const, 'twice' as const),
    fc.array(
      fc.tuple(fc.nat(12), fc.nat(1)).map(([key, text]) => `${key}/${text}`),
      { maxLength: 4 },
    ),
  );
  let followed = 0;
  fc.assert(
    fc.property(LIST, fc.array(STEP, { minLength: 7, maxLength: 7 }), (list, steps) => {
      const before = list.map(pageOf);
      const trail = trailOfPages(before);
      const received = [...before, pageOf([])].flatMap((page, n): PageHashes[] => {
        const step = steps[n]!;
        if (step === 'left out') return [];
        if (step === 'twice') return [page, page];
        if (step === 'as it was') return n < before.length ? [page] : [];
        if (step === 'other texts')
          return [
            {
              keys: page.keys,
              texts: new TextHashes(
                page.keys.length,
                page.texts.words.map((word) => word + 1),
              ),
            },
          ];
        return [pageOf(step)];
      });
      const [along, plain] = [new ReceivedKeys(trail), new ReceivedKeys()];
      for (const page of received) {
        followed += along.isOnTrail(page) ? 1 : 0;
        expect(receive(along, page)).toEqual(receive(plain, page));
      }
      expect(digestOf(along)).toBe(digestOf(plain));
    }),
    { numRuns: 5_000, seed: 5 },
  );
  expect(followed).toBeGreaterThan(5_000);
});

test.each<[string, readonly Records[], boolean]>([
  [
    'pages that join',
    [
      ['a/0', 'b/0'],
      ['b/0', 'c/0'],
    ],
    true,
  ],
  ['pages that do not', [['a/0', 'b/0'], ['c/0']], true],
  ['an empty page between them', [['a/0'], [], ['b/0']], true],
  [
    'a record that stands on two pages elsewhere',
    [
      ['a/0', 'b/0'],
      ['c/0', 'a/0'],
    ],
    false,
  ],
  [
    'a record that comes back two pages later',
    [
      ['a/0', 'b/0'],
      ['b/0', 'c/0'],
      ['a/0', 'd/0'],
    ],
    false,
  ],
  ['a record that stands twice on a page', [['a/0', 'a/0']], false],
  [
    'an overlap of two records',
    [
      ['a/0', 'b/0', 'c/0'],
      ['b/0', 'c/0', 'd/0'],
    ],
    false,
  ],
])('%s make a trail: %s %s', (_, list, makes) => expect(trailOfPages(list.map(pageOf)) !== undefined).toBe(makes));

test('it cannot be asked of a page that is not on the trail before the trail was left', () => {
  const pages = [
    ['a/0', 'b/0'],
    ['b/0', 'c/0'],
  ].map(pageOf);
  const memory = new ReceivedKeys(trailOfPages(pages));
  receive(memory, pages[0]!);
  const other = pageOf(['b/0', 'd/0']);
  expect(() => memory.hasAny(other.keys)).toThrow('not on the trail');
  expect(() => memory.follow(other)).toThrow('not on the trail');
  expect(() => memory.digest).toThrow('not on the trail');
});
