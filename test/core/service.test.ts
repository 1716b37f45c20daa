import { setImmediate } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Service, StopStack } from '../../src/core/service.js';

/** A stack, what its parts did in order, and what failed to stop. */
function harness() {
  const did: string[] = [];
  const failures: [name: string, error: unknown][] = [];
  const late: string[] = [];
  const stack = new StopStack(
    (error, name) => failures.push([name, error]),
    (name) => late.push(name),
  );
  const part = (name: string, members: Partial<Service> = {}): Service => ({
    name,
    start: async () => void did.push(`start ${name}`),
    stop: async () => void did.push(`stop ${name}`),
    ...members,
  });
  return { stack, part, did, failures, late };
}

test('stops in the reverse order, one after the other, and everything once', async () => {
  const { stack, part, did } = harness();
  await stack.start(part('a'));
  const slow = async () => {
    await setImmediate();
    did.push('stop b');
  };
  stack.push(part('b', { stop: slow }));
  await stack.start(part('c'));
  await Promise.all([stack.stop(), stack.stop()]);
  expect(did).toEqual(['start a', 'start c', 'stop c', 'stop b', 'stop a']);
});

test('a part that takes long to stop is named, and no other', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { stack, part, late } = harness();
  stack.push(part('a'));
  stack.push(part('b', { stop: () => new Promise((resolve) => setTimeout(resolve, 10_001)) }));
  stack.push(part('c', { stop: () => new Promise((resolve) => setTimeout(resolve, 9_999)) }));
  const stopped = stack.stop();
  await vi.advanceTimersByTimeAsync(20_001);
  await stopped;
  expect(late).toEqual(['b']);
});

test('the signal aborts before any part is stopped', async () => {
  const { stack, part, did } = harness();
  stack.signal.addEventListener('abort', () => did.push('signal'));
  stack.push(part('a'));
  await stack.stop();
  expect(did).toEqual(['signal', 'stop a']);
});

test('a part that fails to stop is named, and keeps no other from it', async () => {
  const { stack, part, did, failures } = harness();
  const error = new Error('no');
  stack.push(part('a'));
  stack.push(part('b', { stop: () => Promise.reject(error) }));
  stack.push(part('c'));
  await stack.stop();
  expect(did).toEqual(['stop c', 'stop a']);
  expect(failures).toEqual([['b', error]]);
});

test('a service that fails to start is stopped with the others', async () => {
  const { stack, part, did } = harness();
  const error = new Error('no');
  await expect(stack.start(part('a', { start: () => Promise.reject(error) }))).rejects.toBe(error);
  await stack.stop();
  expect(did).toEqual(['stop a']);
});

describe('what comes late', () => {
  const stopping = expect.objectContaining({ code: 'stopping' });

  test('is stopped and not started', async () => {
    const { stack, part, did } = harness();
    await stack.stop();
    await expect(stack.start(part('a'))).rejects.toEqual(stopping);
    await setImmediate();
    expect(did).toEqual(['stop a']);
  });

  test('waits for what is being stopped', async () => {
    const { stack, part, did } = harness();
    const stop = async () => {
      expect(() => stack.push(part('b'))).toThrow(stopping);
      await setImmediate();
      did.push('stop a');
    };
    stack.push(part('a', { stop }));
    await stack.stop();
    expect(did).toEqual(['stop a', 'stop b']);
  });
});
