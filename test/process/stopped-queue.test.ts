import { Queue } from 'bullmq';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { QUEUES } from '../../src/jobs/queue-backend.js';
import { redisUrl } from '../support/redis.js';
import { waitFor } from './wait-for.js';
import { WatchedDeployment } from './watched-deployment.js';

describe.skipIf(!redisUrl())('with the queue on Redis', () => {
  let watched: WatchedDeployment;
  let queues: Queue[];

  beforeAll(async () => {
    watched = await WatchedDeployment.open({ redisUrl: redisUrl() });
    const connection = { url: redisUrl()! };
    queues = QUEUES.map((name) => new Queue(name, { connection, prefix: 'muster', skipMetasUpdate: true }));
  });
  afterAll(async () => {
    await Promise.all(queues.map((queue) => queue.close()));
    await watched.close();
  });

  test('queues that another program pauses go on, and people hear of it once', async () => {
    const { deployment, companyId } = watched;
    const before = await deployment.lastRun(companyId);
    await Promise.all(queues.map((queue) => queue.pause()));
    expect(await queues[0]!.isPaused()).toBe(true);
    expect(await watched.sync()).toBe('succeeded');
    expect((await deployment.lastRun(companyId)).id).not.toBe(before.id);
    await waitFor(async () => !(await Promise.all(queues.map((queue) => queue.isPaused()))).includes(true), {
      what: 'every queue to go on',
    });
    await watched.processes[1]!.waitForOutput(/the queue was paused, and was resumed/);

    expect(await watched.told('ongoing')).toMatchObject({
      type: 'queue_stopped',
      cause: 'queue_stopped',
      environment: 'test',
      count: 1,
    });
    expect(await watched.issues('ongoing')).toMatchObject([{ cause: 'queue_stopped', severity: 'warning', companies: 1 }]);
    expect((await watched.command('issues')).stdout).toMatch(/queue_stopped/);

    // Ten minutes later.
    await deployment.database.db.pool.query(`UPDATE muster.queue_stops SET found_at = now() - interval '11 minutes'`);
    expect(await watched.told('resolved')).toMatchObject({ type: 'queue_stopped' });
    expect(await watched.issues('ongoing')).toEqual([]);
    expect(watched.receiver.received.filter(({ event }) => event.type === 'queue_stopped')).toHaveLength(2);
  });
});
