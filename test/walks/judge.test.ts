import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { validateCatalogue } from '../../src/catalogue/validate.js';
import type { Clock } from '../../src/core/clock.js';
import { isMusterError, MusterError } from '../../src/core/errors.js';
import { keepRefusalTexts } from '../../src/core/refusal-texts.js';
import type { ApiRequest, ApiResponse } from '../../src/http/api-client.js';
import { ResponseMemory } from '../../src/http/response-memory.js';
import type { TokenSource } from '../../src/http/token-source.js';
import { pageSource } from '../../src/walks/page-source.js';
import { walkList } from '../../src/walks/walk.js';
import { LyingService } from './lying-service.js';
import { MemoryMirror } from './memory-mirror.js';
import { ownBytes } from './sync-harness.js';

// Services that lie, each drawn from a seed. No walk may be verified with a record missing that existed throughout and that whoever asks may see; and no
// honest service may be refused its proof. The campaigns run 2,000 (vitest.campaign.config.ts); for more, `JUDGE_SEEDS=100000 npx vitest run test/walks/judge.test.ts`; `FIRST_SEED` replays one.

const SEEDS = Number(process.env.JUDGE_SEEDS ?? process.env.CAMPAIGN_SEEDS ?? 600);
const FIRST = Number(process.env.FIRST_SEED ?? 1);
const clock: Clock = { now: () => 0, monotonic: () => 0, sleep: async () => {} };
const NO_TOKENS = {} as TokenSource;

/** How a walk over the service's list ended: its proof, why there is none, or the error. */
async function walked(service: LyingService, mirror: MemoryMirror): Promise<{ verified: boolean; because: string }> {
  const endpoint = validateCatalogue({ list: service.entry }, 'test').endpoints[0]!;
  const request = async ({ path, query = {}, link, memory }: ApiRequest): Promise<ApiResponse> => {
    const { status, headers, body } = service.answer({ path: link ?? path, query });
    if (status !== 200) {
      const refusal = new MusterError('service_refused', 'refused', { details: { status, own_words: true } });
      keepRefusalTexts(refusal, []);
      throw refusal;
    }
    const bytes = ownBytes(JSON.stringify(body));
    memory?.fit(bytes.length);
    memory?.settle(bytes);
    const search = new URLSearchParams(query).toString();
    const url = `http://service${link ?? path}${search && `${link?.includes('?') ? '&' : '?'}${search}`}`;
    return { status: 200, headers, bytes, url };
  };
  const api = { request, baseUrl: 'http://service/' };
  const sourceOf = pageSource({ api, companyId: 'company', tokens: NO_TOKENS }, endpoint);
  mirror.nextWalk();
  await nextTurn();
  try {
    for (;;) {
      const deps = { store: mirror, sourceOf, clock, answers: new ResponseMemory(1_000_000), shouldYield: () => false };
      if ((await walkList(await mirror.open(endpoint), endpoint, deps, new AbortController().signal)) === 'finished') break;
    }
  } catch (error) {
    if (!isMusterError(error)) throw error;
    return { verified: false, because: error.code };
  }
  const { outcome } = mirror;
  return outcome?.kind === 'verified'
    ? { verified: true, because: outcome.proof }
    : { verified: false, because: outcome!.reason };
}

test('no lie proves a list that is not whole, and every honest service keeps its proof', async () => {
  const counts = { proved: 0, unproved: 0, honest: 0, lying: 0 };
  for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
    const service = new LyingService(seed);
    const mirror = new MemoryMirror();
    const { verified, because } = await walked(service, mirror);
    const context = `seed ${seed}: ${service.lies.join(', ') || 'honest'}; ${JSON.stringify(service.entry)}; ${because}`;
    counts[verified ? 'proved' : 'unproved'] += 1;
    if (verified) {
      const received = new Set(mirror.received());
      expect(
        service.visibleThroughout.filter((id) => !received.has(id)),
        context,
      ).toEqual([]);
    }
    counts[service.isHonest ? 'honest' : 'lying'] += 1;
    if (!service.isHonest || service.mayBeUnproved(because)) continue;
    expect(verified, context).toBe(true);
    expect([...mirror.rows.keys()].toSorted(), context).toEqual(service.visible.toSorted());
  }
  // A judge that sees one side alone judges nothing.
  for (const count of Object.values(counts)) expect(count).toBeGreaterThan(SEEDS / 10);
});
