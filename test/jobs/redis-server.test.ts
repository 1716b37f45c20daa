import { expect, test } from 'vitest';
import { faultOf, readInfo } from '../../src/jobs/redis-server.js';

const standalone = { redis_version: '7.0.15', redis_mode: 'standalone', role: 'master' };
const fault = (lines: object) =>
  faultOf(
    readInfo(
      `# Server\r\n${Object.entries({ ...standalone, ...lines })
        .map((line) => line.join(':'))
        .join('\r\n')}\r\n`,
    ),
  );

test.each([
  {},
  { redis_version: '6.2.0' },
  { redis_version: '7.2.4', server_name: 'valkey', valkey_version: '8.1.1', server_mode: 'standalone' },
  { redis_version: '10.0.0' },
])('can carry a queue: %j', (lines) => {
  expect(fault(lines)).toBeUndefined();
});

test.each([
  [{ redis_version: '6.0.16' }, /version 6\.0\.16.*6\.2/],
  [{ redis_version: '5.0.0' }, /version 5/],
  [{ redis_mode: 'cluster' }, /cluster/],
  [{ cluster_enabled: '1' }, /cluster/],
  [{ redis_mode: 'sentinel' }, /Sentinel/],
  [{ role: 'slave', master_host: '::1', master_port: '6380' }, /replica of ::1:6380/],
])('can carry none: %j', (lines, words) => {
  expect(fault(lines)).toMatch(words);
});
