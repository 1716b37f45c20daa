import type { Effect } from '../faults.js';
import { htmlAnswer, type Lesson, PASSING_SECONDS, type RequestEffect } from './lesson.js';

const PUT_OFF = 'The run waits, retries, and succeeds once the fault is over.';
const UNREADABLE = 'The run waits. Its error says why the response cannot be read, instead of reporting a broken connection.';

function passing(name: string, does: string, effect: Effect | RequestEffect, see = PUT_OFF): Lesson {
  return { name, does, see, seconds: PASSING_SECONDS, act: { kind: 'request', effect } };
}

const raw = (...lines: string[]): Effect => ({ kind: 'raw', text: lines.join('\n') });

/** Short faults of services and of the gateways in front of them. */
export const PASSING_FAULTS: readonly Lesson[] = [
  passing('down', 'The service answers 503.', { kind: 'status', status: 503 }),
  passing('html', 'The service answers 200 with an HTML page, as during maintenance.', htmlAnswer(200, 'Maintenance')),
  passing('empty', 'The service answers 200 with an empty body.', { kind: 'status', status: 200, body: '' }),
  passing(
    'redirect',
    'The service answers 302, to a status page.',
    htmlAnswer(302, 'Found', { location: 'https://status.example.com/' }),
  ),
  passing('firewall', 'A firewall answers 403 with an HTML page.', htmlAnswer(403, 'Access denied')),
  passing('gateway', 'A gateway answers 404 with an HTML page.', htmlAnswer(404, 'No such service')),
  passing('too-early', 'The service answers 425.', { kind: 'status', status: 425 }),
  passing('closed', 'The service answers 499.', { kind: 'status', status: 499 }),
  passing('cut-json', 'The second half of every page is missing.', { kind: 'truncate' }),
  passing('drop', 'The connection ends in the middle of every page.', { kind: 'drop', when: 'midway' }),
  passing(
    'two-lengths',
    'Responses have two values of Content-Length, which HTTP parsers refuse.',
    raw('HTTP/1.1 200 OK\r', 'Content-Length: 2\r', 'Content-Length: 3\r', 'Connection: close\r', '\r', '[]'),
    UNREADABLE,
  ),
  passing(
    'bare-lf',
    'The header lines of responses end with only a line feed.',
    raw('HTTP/1.1 200 OK', 'Content-Type: application/json', 'Content-Length: 2', '', '[]'),
    UNREADABLE,
  ),
  passing(
    'long-header',
    'Responses have a header of 20 KB, more than the default limit of Node.',
    { kind: 'alter', headers: { 'x-trace': 'x'.repeat(20_000) } },
    'The list is verified.',
  ),
  passing(
    'slow-down',
    'Every other request for the list gets 429 with Retry-After: 1.5.',
    (count) => (count % 2 === 0 ? { kind: 'status', status: 429, headers: { 'retry-after': '1.5' } } : undefined),
    'Muster waits two seconds each time, and the list is verified.',
  ),
  passing(
    'limit-date',
    'Every other request gets 429; its X-RateLimit-Reset is a date, its X-RateLimit-Limit-Second a number.',
    (count, now) => (count % 2 === 0 ? { kind: 'status', status: 429, headers: limitHeaders(now) } : undefined),
    'Muster waits until then, keeps to the limit, and the list is verified.',
  ),
];

function limitHeaders(now: number): Record<string, string> {
  return {
    'x-ratelimit-limit-second': '10',
    'x-ratelimit-remaining-second': '0',
    'x-ratelimit-reset': new Date(now + 2_000).toUTCString(),
  };
}
