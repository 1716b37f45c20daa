import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Endpoint } from '../../src/catalogue/endpoint.js';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import type { Clock } from '../../src/core/clock.js';
import { MusterError } from '../../src/core/errors.js';
import type { ApiRequest } from '../../src/http/api-client.js';
import { ResponseMemory } from '../../src/http/response-memory.js';
import type { TokenSource } from '../../src/http/token-source.js';
import { pageSource } from '../../src/walks/page-source.js';
import { walkList } from '../../src/walks/walk.js';
import { randomOf } from '../pagers/shifting-list.js';
import type { MemoryMirror } from './memory-mirror.js';
import { MovingList, type Serving } from './moving-list.js';
import { answerOf } from './sync-harness.js';

// Walks over simulated lists, whichever way their records are compared.

/**
 * Seeds of each kind: enough to notice that something is broken; the campaigns run 500 (vitest.campaign.config.ts). For more,
 * `CAMPAIGN_SEEDS=100000 npx vitest run test/walks/simulation.test.ts test/unchanged/simulation.test.ts`; `FIRST_SEED` replays one.
 */
export const SEEDS = Number(process.env.CAMPAIGN_SEEDS ?? process.env.SIMULATION_SEEDS ?? 30);
export const FIRST = Number(process.env.FIRST_SEED ?? 1);
/** Lists of which `countCaught` counts. */
export const CAUGHT_OF = Math.min(200, 2 * SEEDS);
const CHANGES = { skipName: 'skip', takeName: 'take' };
const NO_TOKENS = {} as TokenSource;
const clock: Clock = { now: () => 0, monotonic: () => 0, sleep: async () => {} };

interface Requests {
  readonly made: number;
  readonly notModified: number;
}

interface World {
  readonly list: MovingList;
  readonly endpoint: Endpoint;
  /** What happens before a request is answered. */
  stir: () => void;
  readonly etags: boolean;
  /** How likely, in a hundred, a page token has expired. */
  readonly forgetful: number;
  readonly random: (below: number) => number;
  /** Room for some pages, and now and then for one alone. */
  readonly answers: ResponseMemory;
  /** How long a request takes. */
  readonly pause?: () => Promise<void>;
}

function world(seed: number, { style, declared, ...served }: Kind, forgetful: number): World {
  const random = randomOf(seed * 7919);
  const lastingTokens = seed % 4 < 2;
  const tellsTotal = seed % 8 < 4;
  const list = new MovingList(seed, random(45), { style, ...served, mostAtOnce: 1 + random(12), lastingTokens, tellsTotal });
  const etags = seed % 2 === 0;
  const size = 1 + random(12);
  const { method, ...entry } = entryOf(style, size, list.serving.tellsTotal === true);
  const isGet = method === 'GET' || (method === undefined && etags);
  const whole = { method: isGet ? 'GET' : 'POST', path: '/{company_id}', order: declared, ...entry };
  return {
    list,
    endpoint: validateCatalogue({ list: whole }, 'test').endpoints[0]!,
    stir: () => {},
    etags,
    forgetful,
    random,
    answers: new ResponseMemory(memoryFor(random)),
  };
}

/** Bytes: a page has 4 kB at most. */
function memoryFor(random: (below: number) => number): number {
  return 12_000 + random(5) * random(10_000);
}

/** The catalogue entry of a list that is served so. */
function entryOf(
  style: Serving['style'],
  size: number,
  tellsTotal: boolean,
): { readonly method?: string } & Record<string, unknown> {
  switch (style) {
    case 'total':
      return { pager: { style: 'skip-take', ...CHANGES, size } };
    case 'bare':
      return { pager: { style: 'skip-take', ...CHANGES, size }, envelope: 'none' };
    case 'page':
      return { pager: { style: 'page-number', pageName: 'page', sizeName: 'take', size } };
    case 'page-bare':
      return { pager: { style: 'page-number', pageName: 'page', sizeName: 'take', size }, fields: { data: 'none' } };
    case 'token':
      return { pager: { style: 'continuation', size } };
    case 'link': {
      const fields = { data: 'value', next: '@odata.nextLink', ...(tellsTotal && { total: '@odata.count' }) };
      return { method: 'GET', pager: { style: 'next-link', sizeName: 'take', size }, fields };
    }
    case 'cursor':
      return {
        pager: { style: 'continuation', tokenName: 'after', sizeName: 'take', size },
        fields: { data: 'rows', next: 'last id' },
      };
  }
}

/** One walk, interrupted now and then and gone on with from what was kept. */
async function walk(
  mirror: MemoryMirror,
  { list, endpoint, stir, etags, forgetful, random, answers, pause }: World,
): Promise<Requests> {
  const requests = { made: 0, notModified: 0 };
  const request = async ({ query, body, link, ifNoneMatch, memory }: ApiRequest) => {
    requests.made += 1;
    stir();
    if (pause) await pause();
    const asked = link ? Object.fromEntries(new URL(link, 'http://service').searchParams) : (body ?? query)!;
    const { skip, take, pageSize, page } = asked;
    const token = (asked['token'] ?? asked['after'] ?? asked['continuationToken']) as string | undefined;
    const expired = token !== undefined && random(100) < forgetful;
    const text = list.answer({ skip: Number(skip), take: Number(take ?? pageSize), token, page: Number(page) });
    if (expired || text === undefined)
      throw new MusterError('service_refused', 'expired', { details: { status: 400, own_words: true } });
    const answer = answerOf(text, etags, { ifNoneMatch });
    // While it comes and is decoded, an answer may be larger than anything has said.
    memory?.fit(answer.bytes.length + random(1_000) * random(3));
    memory?.settle(answer.bytes);
    if (answer.status === 304) requests.notModified += 1;
    return answer;
  };
  const sourceOf = pageSource(
    { api: { request, baseUrl: 'http://service/' }, companyId: 'company', tokens: NO_TOKENS },
    endpoint,
  );
  const shouldYield = () => random(8) === 0;
  mirror.nextWalk();
  list.watch();
  // Nothing here waits for the outside world, and without a turn of the event loop nothing weakly held is ever let go of.
  await nextTurn();
  for (;;) {
    const end = await walkList(
      await mirror.open(endpoint),
      endpoint,
      { store: mirror, sourceOf, clock, answers, shouldYield },
      new AbortController().signal,
    );
    if (end === 'finished') return requests;
  }
}

function findFaults(seed: number, mirror: MemoryMirror, { list, endpoint }: World): void {
  if (mirror.outcome?.kind !== 'verified') return;
  const received = new Set(mirror.received());
  const missed = [...list.steadfast].filter((id) => !received.has(id));
  const present = new Set(list.ids);
  const buried = mirror.deleted.filter((id) => present.has(id));
  expect({ missed, buried }, `seed ${seed}: ${JSON.stringify(endpoint)}`).toEqual({ missed: [], buried: [] });
}

/** How lists are served, and what their entries say of their order. */
export interface Kind {
  readonly style: Serving['style'];
  readonly declared: 'stable' | 'unstable';
  readonly reorders: boolean;
  readonly clamps?: boolean;
}

export const kinds = [
  { style: 'total', declared: 'stable', reorders: false },
  { style: 'bare', declared: 'stable', reorders: false },
  { style: 'token', declared: 'stable', reorders: false },
  { style: 'total', declared: 'unstable', reorders: true },
  { style: 'bare', declared: 'unstable', reorders: true },
  { style: 'total', declared: 'unstable', reorders: false },
  { style: 'page', declared: 'stable', reorders: false },
  { style: 'page-bare', declared: 'stable', reorders: false },
  { style: 'page', declared: 'unstable', reorders: true },
  { style: 'link', declared: 'stable', reorders: false },
  { style: 'cursor', declared: 'stable', reorders: false },
] as const satisfies readonly Kind[];

/** What came of many walks of one kind. */
interface Simulated {
  readonly verified: number;
  readonly unverified: number;
  readonly spared: number;
  readonly notModified: number;
}

/** Three walks a seed over a list that moves, and one once nothing moves; none may miss a record or bury one. */
export async function simulate(
  { style, declared, reorders, clamps = false }: Kind,
  mirrorOf: () => MemoryMirror,
  { first = FIRST, seeds = SEEDS } = {},
): Promise<Simulated> {
  let verified = 0;
  let unverified = 0;
  let spared = 0;
  let notModified = 0;
  for (let seed = first; seed < first + seeds; seed += 1) {
    const here = world(seed, { style, declared, reorders, clamps }, seed % 3 === 0 ? 4 : 0);
    const mirror = mirrorOf();
    const restlessness = here.random(40);
    const growth = here.random(10);
    for (let n = 0; n < 3; n += 1) {
      here.stir = () => {
        while (here.random(100) < restlessness) here.list.change(growth);
      };
      try {
        notModified += (await walk(mirror, here)).notModified;
      } catch (error) {
        // A token that expires too often ends the walk, which then proves nothing; so does a list whose only page comes again and again.
        const mayBe = clamps ? 'pager_misdeclared' : 'page_token_expired';
        if (!(error instanceof MusterError) || error.code !== mayBe) throw error;
        break;
      }
      findFaults(seed, mirror, here);
      expect(here.answers.used).toBe(0);
      if (mirror.outcome?.kind === 'verified') verified += 1;
      else unverified += 1;
    }
    spared += mirror.spared;
    // Once nothing moves, every walk verifies, and leaves a mirror that equals the list.
    if (reorders || clamps) continue;
    here.stir = () => {};
    await walk(mirror, { ...here, forgetful: 0 });
    // A list whose last page is full, or as long as the longest, and names no other may go on: its name may have been lost.
    if (style === 'link' && mirror.outcome?.kind === 'unverified') {
      expect(mirror.outcome.reason).toBe('end_unproved');
      continue;
    }
    expect(mirror.outcome, `seed ${seed}, quiet: ${JSON.stringify(here.endpoint)}`).toMatchObject({ kind: 'verified' });
    expect(mirror.rows, `seed ${seed}, quiet`).toEqual(here.list.texts);
  }
  return { verified, unverified, spared, notModified };
}

/** How many lists that are reordered behind the back of their catalogue entry are caught by the next walk. */
export async function countCaught(mirrorOf: () => MemoryMirror): Promise<number> {
  let caught = 0;
  for (let seed = FIRST; seed < FIRST + CAUGHT_OF; seed += 1) {
    const here = world(seed, { style: 'total', declared: 'stable', reorders: false }, 0);
    if (here.list.ids.length < 12) continue;
    const mirror = mirrorOf();
    await walk(mirror, here);
    const other = new MovingList(seed, here.list.ids.length, { ...here.list.serving, reorders: true });
    await walk(mirror, { ...here, list: other });
    if (!mirror.unstable) continue;
    caught += 1;
    findFaults(seed, mirror, { ...here, list: other });
    if (mirror.outcome?.kind === 'verified') expect(mirror.outcome.proof).toBe('two-pass');
  }
  return caught;
}

/**
 * Two nights of walks over lists that stand still, side by side in one memory that has room for few of their pages. All of them end, verified and equal
 * to their lists, and never more than all of the memory is taken. Returns how many requests found too little of it.
 */
export async function walkInSharedMemory(seed: number, mirrorOf: () => MemoryMirror): Promise<number> {
  const random = randomOf(seed * 104_729);
  const answers = new ResponseMemory(memoryFor(random));
  let short = 0;
  const pause = async () => {
    for (let turns = random(4); turns > 0; turns -= 1) await nextTurn();
    expect(answers.used).toBeLessThanOrEqual(answers.budget);
    if (answers.isShort) short += 1;
  };
  const styles = ['total', 'token', 'page', 'cursor'] as const;
  const walks = Array.from({ length: 6 }, (_, n) => {
    const here = {
      ...world(seed * 6 + n, { style: styles[random(4)]!, declared: 'stable', reorders: false }, 0),
      answers,
      pause,
    };
    return { here, mirror: mirrorOf() };
  });
  for (let night = 0; night < 2; night += 1) {
    for (const { here } of walks) for (let changes = random(12) * night; changes > 0; changes -= 1) here.list.change(random(10));
    await Promise.all(walks.map(({ here, mirror }) => walk(mirror, here)));
    for (const { here, mirror } of walks) {
      expect(mirror.outcome, `seed ${seed}: ${JSON.stringify(here.endpoint)}`).toMatchObject({ kind: 'verified' });
      expect(mirror.rows, `seed ${seed}`).toEqual(here.list.texts);
    }
    expect(answers.used).toBe(0);
  }
  return short;
}
