import { afterAll, describe, expect, test } from 'vitest';
import { Deployment } from '../process/deployment.js';
import { startMuster, type TestProcess } from '../support/process.js';
import { RedisServer } from '../support/redis-server.js';
import { waitFor } from '../support/wait-for.js';

const servers: RedisServer[] = [];
afterAll(() => Promise.all(servers.map((server) => server.remove())));

async function start(...args: string[]): Promise<RedisServer> {
  const server = await RedisServer.start(...args);
  servers.push(server);
  return server;
}

describe('at the start', () => {
  let deployment: Deployment;
  afterAll(() => deployment?.close());

  async function started(url: string): Promise<{ code: number | null; written: string }> {
    deployment ??= await Deployment.open();
    const muster = startMuster(['worker'], { ...deployment.env, REDIS_URL: url });
    const ready = muster.waitForOutput(/ready: worker/).then(
      () => muster.kill('SIGTERM'),
      () => {},
    );
    const { code } = await muster.exit;
    await ready;
    return { code, written: muster.stdout + muster.stderr };
  }

  /** What a start that is refused for good writes: one message, without the password and without a stack. */
  async function refusal(url: string): Promise<string> {
    const { code, written } = await started(url);
    expect({ code, written }).toEqual({ code: 2, written: expect.stringMatching(/^muster: .*\n$/) });
    expect(written).not.toContain('pw-of-the-user');
    return written;
  }

  async function serverWithUser(...rules: string[]): Promise<string> {
    const server = await start();
    await server.command('ACL', 'SETUSER', 'muster', 'on', '>pw-of-the-user', ...rules);
    return `redis://muster:pw-of-the-user@127.0.0.1:${server.port}`;
  }

  test('a user without INFO is refused', async () => {
    expect(await refusal(await serverWithUser('~*', '+@all', '-info'))).toMatch(
      /REDIS_URL.*INFO.*ACL SETUSER.*\[invalid_configuration\]/,
    );
  });

  test.each([
    ['without scripts', ['~*', '+@all', '-@scripting']],
    ['of other keys', ['~other:*', '+@all']],
    ['that only reads', ['~*', '+@read', '+@connection', '+@scripting', '+info']],
  ])('a user %s is refused', async (_what, rules) => {
    expect(await refusal(await serverWithUser(...rules))).toMatch(/REDIS_URL.*keys of the queue.*ACL SETUSER/);
  });

  test('a user with the rights that the refusal names is enough', async () => {
    const url = await serverWithUser('~muster:*', '+@all', '-@dangerous', '+info');
    expect(await started(url)).toMatchObject({ code: 0, written: expect.not.stringMatching(/"level":[45]0/) });
  });

  test('a node of a cluster is refused', async () => {
    expect(await refusal((await start('--cluster-enabled', 'yes')).url)).toMatch(
      /REDIS_URL.*node of a cluster.*without cluster-enabled/,
    );
  });

  test('a Sentinel is refused', async () => {
    expect(await refusal((await start('--sentinel')).url)).toMatch(/REDIS_URL.*Sentinel.*primary/);
  });

  test('a replica is refused, and its primary named', async () => {
    const primary = await start();
    const replica = await start('--replicaof', '127.0.0.1', String(primary.port));
    expect(await refusal(replica.url)).toMatch(new RegExp(`REDIS_URL.*replica of 127.0.0.1:${primary.port}.*primary`));
  });

  test('a server that takes no writes for now is no wrong setting', async () => {
    const full = await start('--maxmemory', '1');
    expect(await started(full.url)).toMatchObject({
      code: 1,
      written: expect.stringMatching(/memory is full.*queue_unavailable/),
    });
  });

  test('an eviction policy that loses keys is told once, in the log', async () => {
    const { code, written } = await started((await start('--maxmemory-policy', 'allkeys-lru')).url);
    expect(code).toBe(0);
    const lines = written.split('\n').filter((text) => /evict/i.test(text));
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0]!)).toMatchObject({ level: 40, policy: 'allkeys-lru' });
  });
});

describe('later', () => {
  let deployment: Deployment;
  let redis: RedisServer;
  let api: TestProcess;
  afterAll(async () => {
    api?.kill('SIGTERM');
    await api?.exit;
    await deployment?.close();
  });

  const readyz = async () => {
    const response = await deployment.fetch('/readyz');
    return { status: response.status, text: await response.text() };
  };

  test.each<[string, RegExp, (server: RedisServer) => unknown, (server: RedisServer) => unknown]>([
    ['becomes a replica', /replica/, (r) => r.command('REPLICAOF', '127.0.0.1', '1'), (r) => r.command('REPLICAOF', 'NO', 'ONE')],
    [
      'is full',
      /memory is full/,
      (r) => r.command('CONFIG', 'SET', 'maxmemory', '1'),
      (r) => r.command('CONFIG', 'SET', 'maxmemory', '0'),
    ],
    [
      'takes no writes',
      /too few replicas/,
      (r) => r.command('CONFIG', 'SET', 'min-replicas-to-write', '1'),
      (r) => r.command('CONFIG', 'SET', 'min-replicas-to-write', '0'),
    ],
    [
      'has another password',
      /refuses the user or the password/,
      (r) =>
        r.as({}, async (admin) => {
          await admin.call('CONFIG', 'SET', 'requirepass', 'another');
          await admin.call('AUTH', 'another');
          await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
        }),
      (r) => r.as({ password: 'another' }, (admin) => admin.call('CONFIG', 'SET', 'requirepass', '')),
    ],
    ['hangs', /does not answer/, (r) => r.kill('SIGSTOP'), (r) => r.kill('SIGCONT')],
    ['is gone', /no connection|closed/i, (r) => r.stop(), (r) => r.start()],
  ])(
    'a server that %s is told by /readyz, stops nobody from stopping, and carries the queue again afterwards',
    async (_what, words, breaks, mends) => {
      if (!api) {
        redis = await start();
        deployment = await Deployment.open({
          redisUrl: redis.url,
          sandbox: { companies: Array.from({ length: 6 }, (_, n) => ({ name: `C${n}`, employees: 30 })) },
        });
        api = await deployment.startApi();
      }
      const worker = await deployment.startWorker();
      expect(await readyz()).toEqual({ status: 200, text: expect.any(String) });
      await breaks(redis);
      await waitFor(async () => {
        const { status, text } = await readyz();
        return status === 503 && words.test(text);
      });
      worker.kill('SIGTERM');
      const begin = performance.now();
      expect(await worker.exit).toEqual({ code: 0, signal: null });
      expect(performance.now() - begin).toBeLessThan(15_000);
      expect(worker.stderr).not.toContain('stopping took too long');
      await mends(redis);
      await waitFor(async () => (await readyz()).status === 200);
      const heir = await deployment.startWorker();
      const next = deployment.sandbox.companies[onboarded++]!;
      await deployment.onboard(next.companyId);
      expect(await deployment.runEnd(next.companyId)).toMatchObject({ status: 'succeeded' });
      heir.kill('SIGTERM');
      expect(await heir.exit).toEqual({ code: 0, signal: null });
    },
  );
});

let onboarded = 0;
