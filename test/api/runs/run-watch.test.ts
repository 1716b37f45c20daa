import { expect, test } from 'vitest';
import { RunStream } from '../../../src/api/runs/run-stream.js';
import { type RunSight, RunWatch } from '../../../src/api/runs/run-watch.js';
import type { ShownRun } from '../../../src/db/tables/run-list.js';
import { createLogger } from '../../../src/observability/logger.js';

const logger = createLogger({ level: 'silent' });

function run(id: string, status: ShownRun['status'] = 'running'): ShownRun {
  const times = { createdAt: new Date(0), startAfter: new Date(0), quietUntil: null, startedAt: null, finishedAt: null };
  return {
    id,
    environment: 'test',
    companyId: id,
    trigger: 'manual',
    kind: 'sync',
    mode: 'full',
    status,
    attempts: 0,
    error: null,
    walks: [],
    ...times,
  };
}

/** A clock whose sleeps end when the test says so. */
function manualClock() {
  const sleepers = new Set<() => void>();
  return {
    sleeping: () => sleepers.size,
    tick: async () => {
      for (const wake of sleepers) wake();
      for (let i = 0; i < 10; i++) await Promise.resolve();
    },
    clock: {
      now: () => 0,
      monotonic: () => 0,
      sleep: (_ms: number, signal?: AbortSignal) =>
        new Promise<void>((resolve, reject) => {
          const wake = () => {
            sleepers.delete(wake);
            resolve();
          };
          sleepers.add(wake);
          signal?.addEventListener('abort', () => {
            sleepers.delete(wake);
            reject(new Error('aborted'));
          });
        }),
    },
  };
}

const SEEN: RunSight = { text: 'seen', isOver: false };

test('however many begin to watch a run at once, it is read once; and not at all while it is watched', async () => {
  const { clock, tick } = manualClock();
  let asked = 0;
  const watch = new RunWatch({
    clock,
    logger,
    findRuns: async (ids) => {
      asked += 1;
      return ids.filter((id) => id !== 'gone').map((id) => run(id, asked === 1 ? 'queued' : 'running'));
    },
  });
  const sights = await Promise.all(Array.from({ length: 1_000 }, () => watch.see('run-1')));
  expect(asked).toBe(1);
  expect(new Set(sights.map((sight) => sight?.text)).size).toBe(1);
  const end = watch.watch('run-1', sights[0]!, () => {});
  expect(await watch.see('run-1')).toBe(sights[0]);
  expect(asked).toBe(1);
  await tick();
  expect((await watch.see('run-1'))?.text).toContain('"running"');
  expect(asked).toBe(2);
  end();
  await watch.see('run-1');
  expect(asked).toBe(3);
  expect(await watch.see('gone')).toBeUndefined();
});

test('however many watch however many runs, they are read together; and not at all once nobody watches', async () => {
  const { clock, sleeping, tick } = manualClock();
  const asked: (readonly string[])[] = [];
  const watch = new RunWatch({
    clock,
    logger,
    findRuns: async (ids) => {
      asked.push(ids);
      return ids.map((id) => run(id));
    },
  });
  const told: string[] = [];
  const ends = Array.from({ length: 1_000 }, (_, i) => watch.watch(`run-${i % 3}`, SEEN, (sight) => told.push(sight!.text)));
  await tick();
  expect([asked.length, asked[0]?.length, told.length]).toEqual([1, 3, 1_000]);
  expect(new Set(told).size).toBe(3);
  for (const end of ends) end();
  ends[0]!();
  expect(sleeping()).toBe(0);
  await tick();
  expect(asked.length).toBe(1);
  watch.watch('run-1', SEEN, () => {});
  await tick();
  expect(asked.at(-1)).toEqual(['run-1']);
});

test('a reading that fails is made up for by the next one', async () => {
  const { clock, tick } = manualClock();
  let fails = true;
  const watch = new RunWatch({
    clock,
    logger,
    findRuns: async (ids) => (fails ? Promise.reject(new Error('away')) : ids.map((id) => run(id))),
  });
  const told: (RunSight | undefined)[] = [];
  watch.watch('run-1', SEEN, (sight) => told.push(sight));
  await tick();
  expect(told).toEqual([]);
  fails = false;
  await tick();
  expect(told).toHaveLength(1);
});

test('a reader who does not read has one event that waits for it, the newest', async () => {
  const stream = new RunStream({ monotonic: () => 0 });
  stream.read(0);
  stream.update({ text: '0', isOver: false });
  for (let i = 1; i <= 10_000; i++) stream.update({ text: String(i), isOver: i === 10_000 });
  expect(stream.readableLength).toBeLessThan(40);
  const events: string[] = [];
  for await (const chunk of stream) events.push(String(chunk));
  expect(events.join('')).toBe('event: run\ndata: 0\n\nevent: run\ndata: 10000\n\n');
});

test('a silent stream says every fifteen seconds that it is there', async () => {
  let now = 0;
  const stream = new RunStream({ monotonic: () => now });
  stream.update({ text: '0', isOver: false });
  const events: string[] = [];
  stream.on('data', (chunk) => events.push(String(chunk)));
  for (; now <= 31_000; now += 500) {
    await new Promise(setImmediate);
    stream.update({ text: '0', isOver: false });
  }
  expect(events).toEqual(['event: run\ndata: 0\n\n', ': still here\n\n', ': still here\n\n']);
  stream.destroy();
});
