import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ActiveReaders } from '../../../src/api/plumbing/active-readers.js';
import type { Caller } from '../../../src/api/plumbing/caller.js';
import { createLogger } from '../../../src/observability/logger.js';

const byToken = (tokenId: string): Caller => ({ name: 'a', role: 'viewer', tokenId });
const bySession = (sessionId: string, tokenId?: string): Caller => ({ ...byToken(tokenId!), sessionId });

/** Readers over a made-up database, and a clock that goes on when the test says so. */
function readersOver(living: Set<string>) {
  const asked: string[][] = [];
  const sleepers: (() => void)[] = [];
  let fails = false;
  const find = async (ids: readonly string[]) => {
    asked.push([...ids]);
    if (fails) throw new Error('The database does not answer');
    return ids.filter((id) => living.has(id));
  };
  const sleep = (_ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      sleepers.push(resolve);
      signal?.addEventListener('abort', () => reject(new Error('aborted')));
    });
  return {
    asked,
    readers: new ActiveReaders({
      clock: { sleep },
      logger: createLogger({ level: 'silent' }),
      findActive: { tokens: find, sessions: find },
    }),
    fail: (does: boolean) => void (fails = does),
    tick: async () => {
      sleepers.splice(0).forEach((wake) => wake());
      await setImmediate();
    },
  };
}

test('a thousand readers cost what one costs: a question for all tokens, and one for all sessions', async () => {
  const { asked, readers, tick } = readersOver(new Set(['t', 's']));
  const ended: string[] = [];
  for (let n = 0; n < 1_000; n++) {
    readers.add(byToken('t'), () => ended.push('t'));
    readers.add(bySession('s', 't'), () => ended.push('s'));
  }
  await tick();
  expect(asked).toEqual([['t'], ['s']]);
  expect(ended).toEqual([]);
});

test('who may read no more is told once, and nothing is asked when nobody reads on', async () => {
  const living = new Set(['t1', 't2', 's1', 's2']);
  const { asked, readers, tick } = readersOver(living);
  const ended: string[] = [];
  readers.add(byToken('t1'), () => ended.push('t1'));
  readers.add(bySession('s1'), () => ended.push('s1'));
  const leave = [readers.add(byToken('t2'), () => ended.push('t2')), readers.add(bySession('s2'), () => ended.push('s2'))];
  living.delete('t1');
  living.delete('s1');
  await tick();
  expect(ended).toEqual(['t1', 's1']);
  await tick();
  expect(ended).toEqual(['t1', 's1']);
  for (const each of [...leave, ...leave]) each();
  asked.length = 0;
  await tick();
  expect(asked).toEqual([]);
  readers.add(byToken('t2'), () => ended.push('t2'));
  await tick();
  expect(asked).toEqual([['t2']]);
});

test('the administrator is asked nothing about, and nobody is ended while the database does not answer', async () => {
  const { asked, readers, fail, tick } = readersOver(new Set());
  const ended: string[] = [];
  readers.add({ name: 'admin', role: 'admin' }, () => ended.push('admin'));
  await tick();
  expect(asked).toEqual([]);
  readers.add(byToken('t'), () => ended.push('t'));
  fail(true);
  await tick();
  expect(ended).toEqual([]);
  fail(false);
  await tick();
  expect(ended).toEqual(['t']);
});
