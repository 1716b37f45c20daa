import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeEach } from 'vitest';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { accessTokenFor, get, post, TestClock } from './client.js';

export const MANY = 'd0d0d0d0-0000-4000-8000-00000000000d';
export const NONE = 'e0e0e0e0-0000-4000-8000-00000000000e';
export const FEW = 'f0f0f0f0-0000-4000-8000-00000000000f';

const companies = [
  { companyId: NONE, name: 'None', employees: 0 },
  { companyId: FEW, name: 'Few', employees: 3 },
  { companyId: MANY, name: 'Many', employees: 240, positions: 120 },
];

/** A sandbox for one test file, with an access token of each company. Each test begins without lessons. */
export async function lessonSandbox() {
  const clock = new TestClock();
  const sandbox = await startSandbox({ clock, companies, maxTake: 100 });
  const tokens = new Map<string, string>();
  beforeEach(async () => {
    sandbox.reset();
    for (const companyId of [MANY, NONE, FEW]) tokens.set(companyId, await accessTokenFor(sandbox, companyId));
  });
  afterAll(() => sandbox.stop());
  return {
    clock,
    sandbox,
    tokens,
    /** Asks for a page of a list: the first one, or where `place`, a position or a page token, leads. */
    ask: (list: AskedList, place: string | number = 0, companyId = MANY) =>
      askFor(sandbox, tokens.get(companyId)!, { companyId, list, place }),
    rawAnswer: (list: AskedList) => rawAnswer(sandbox, tokens.get(MANY)!, list),
  };
}

type AskedList = 'employees' | 'documents' | 'payslips' | 'shifts' | 'notes' | 'positions';

interface Asked {
  readonly companyId: string;
  readonly list: AskedList;
  readonly place: string | number;
}

function askFor(sandbox: Sandbox, token: string, { companyId, list, place }: Asked): Promise<Response> {
  const path = `/api/companies/${companyId}`;
  const at = String(place);
  const body = (tokenName: string) => (place === 0 ? {} : { [tokenName]: place });
  switch (list) {
    case 'employees':
      return get(sandbox, token, `${path}/employees`, { skip: at, $take: '100' });
    case 'documents':
      return post(sandbox, token, `/api/v2.0/companies/${companyId}/documents/list`, {
        pageSize: 100,
        ...body('continuationToken'),
      });
    case 'payslips':
      return post(sandbox, token, `/api/v2.0/companies/${companyId}/payslips/list`, { limit: 100, ...body('after') });
    case 'shifts':
      return get(sandbox, token, `/odata/companies/${companyId}/shifts`, { $top: '100', ...(place !== 0 && { $skiptoken: at }) });
    case 'notes':
      return get(sandbox, token, `${path}/notes`, { skip: at, take: '50' });
    case 'positions':
      return get(sandbox, token, `${path}/positions`, { per_page: '50' });
  }
}

/** Everything that the sandbox sends for a first page, as it comes. */
async function rawAnswer(sandbox: Sandbox, token: string, list: AskedList): Promise<string> {
  const socket = connect(Number(sandbox.url.port), sandbox.url.hostname);
  let received = '';
  socket.setEncoding('latin1').on('data', (text: string) => (received += text));
  const headers = ['Host: sandbox', 'Connection: close', `Authorization: Bearer ${token}`];
  socket.write([`GET /api/companies/${MANY}/${list}?take=5&$take=5 HTTP/1.1`, ...headers, '', ''].join('\r\n'));
  await once(socket, 'close');
  return received;
}

export type Answer = Record<string, unknown> & { data: object[] };

export async function json(response: Response | Promise<Response>): Promise<Answer> {
  return (await (await response).json()) as Answer;
}
