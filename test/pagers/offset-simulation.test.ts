import { describe, expect, test } from 'vitest';
import { OffsetPager, type OffsetState } from '../../src/pagers/offset.js';
import type { PageInput } from '../../src/pagers/pager.js';
import { pageOf, ReceivedNames } from './received.js';
import { type ListResponse, randomOf, ShiftingList } from './shifting-list.js';

interface Outcome {
  readonly state: OffsetState;
  readonly isJoined: boolean;
  readonly received: ReceivedNames;
  readonly requests: number;
}

/** One pass, page after page or up to `width` requests side by side; `shift` is called before every request is answered. */
function pass(list: ShiftingList, size: number, shift: () => void, width = 1): Outcome {
  const pager = new OffsetPager(
    { resource: 'list', envelope: '' },
    { style: 'skip-take', in: 'body', skipName: 'from', takeName: 'count', size },
  );
  const received = new ReceivedNames();
  const answered = new Map<string, ListResponse>();
  let requests = 0;
  const ask = (input: PageInput) => {
    shift();
    requests += 1;
    return list.answer(input);
  };
  let state = pager.first();
  for (;;) {
    for (const input of [pager.request(state), ...pager.ahead(state, 0, width - 1)]) {
      const place = JSON.stringify(input);
      if (!answered.has(place)) answered.set(place, ask(input));
    }
    const place = JSON.stringify(pager.request(state));
    const page = answered.get(place) as ListResponse;
    answered.delete(place);
    const advance = pager.next(state, page, received.before(page));
    // Pages asked for ahead of a page that did not join are of no use.
    if (advance.kind === 'again') answered.clear();
    else received.add(page);
    if (advance.kind === 'done') return { state, isJoined: pager.linkage(state) === 'join', received, requests };
    state = JSON.parse(JSON.stringify(advance.state)) as OffsetState;
  }
}

function missed({ steadfast }: ShiftingList, { received }: Outcome): string[] {
  return [...steadfast].filter((key) => !received.names.has(key));
}

describe('a pass over a quiet list', () => {
  test('receives exactly the list, in the number of requests that it takes', () => {
    for (const tellsTotal of [true, false]) {
      for (let length = 0; length <= 40; length += 1) {
        for (const [size, mostAtOnce] of [
          [7, 100],
          [7, 3],
          [40, 100],
          [2, 2],
          [1, 1],
          [5, 1],
        ] as const) {
          const list = new ShiftingList(length, tellsTotal, mostAtOnce);
          const outcome = pass(list, size, () => {});
          expect([...outcome.received.names], `${length} records by ${size}`).toEqual(list.records);
          const step = Math.max(1, Math.min(size, mostAtOnce) - 1);
          expect(outcome.requests).toBeLessThanOrEqual(Math.ceil(length / step) + 2);
        }
      }
    }
  });
});

describe.each([
  { what: 'that tells its total', tellsTotal: true, width: 1 },
  { what: 'that tells its total, read four pages side by side', tellsTotal: true, width: 4 },
  { what: 'that is a bare array', tellsTotal: false, width: 1 },
])('a pass over a shifting list $what', ({ tellsTotal, width }) => {
  test('misses no record that was there throughout', () => {
    let joined = 0;
    let moved = 0;
    for (let seed = 1; seed <= 8_000; seed += 1) {
      const random = randomOf(seed);
      const list = new ShiftingList(random(60), tellsTotal, 3 + random(9));
      const size = 3 + random(12);
      const shift = shifts(list, random, 1 + random(6), random(10));
      const outcome = pass(list, size, shift, width);
      if (!outcome.isJoined) continue;
      joined += 1;
      if (outcome.requests > 3 && outcome.state.offset > 0) moved += 1;
      expect(missed(list, outcome), `seed ${seed}`).toEqual([]);
    }
    // Were most walks trivial or unprovable, the test would say nothing.
    expect(joined).toBeGreaterThan(7_000);
    expect(moved).toBeGreaterThan(5_000);
  });

  test('ends when the list shrinks to nothing', () => {
    const list = new ShiftingList(300, tellsTotal, 100);
    const outcome = pass(
      list,
      10,
      () => {
        for (let gone = 0; gone < 25; gone += 1) list.delete(0);
      },
      width,
    );
    expect(list.records).toEqual([]);
    expect(outcome.requests).toBeLessThan(60);
  });
});

/** Up to `restlessness` changes at random places, of which `deletions` in ten delete. */
function shifts(list: ShiftingList, random: (below: number) => number, restlessness: number, deletions: number): () => void {
  return () => {
    for (let changes = random(restlessness); changes > 0; changes -= 1) {
      if (random(10) < deletions) list.delete(random(list.records.length + 1));
      // A list that outgrows its reader ends by the limit, which is another test.
      else if (list.records.length < 120) list.insert(random(list.records.length + 1));
    }
  };
}

describe('a pass over a list that grows as fast as it is read', () => {
  test.each(['front', 'end'])('ends by the limit: %s', (where) => {
    const list = new ShiftingList(50, true, 10);
    const grow = () => {
      for (let born = 0; born < 10; born += 1) list.insert(where === 'front' ? 0 : list.records.length);
    };
    expect(() => pass(list, 10, grow)).toThrow(expect.objectContaining({ code: 'walk_limit_exceeded' }));
  });

  test('ends by the limit where no total is told', () => {
    const pager = new OffsetPager(
      { resource: 'list', envelope: '' },
      { style: 'skip-take', in: 'body', skipName: 'from', takeName: 'count', size: 3 },
    );
    const state = { ...pager.first(), offset: 2, requests: 99_999 };
    const received = new ReceivedNames();
    received.add(pageOf('A'));
    expect(() => pager.next(state, pageOf('ABC'), received.before(pageOf('ABC')))).toThrow(
      expect.objectContaining({ code: 'walk_limit_exceeded' }),
    );
  });
});
