import type { FastifyInstance } from 'fastify';
import { escapeHtml } from '../core/escape-html.js';
import { Refusal, redirect, sendPage, visitOf } from './answer.js';
import type { Faults } from './faults.js';
import type { Grants } from './grants.js';
import { htmlPage } from './html-page.js';
import type { Lessons } from './lessons/lessons.js';
import type { RequestLog } from './request-log.js';
import type { World } from './world.js';

export interface Controls {
  readonly world: World;
  readonly grants: Grants;
  readonly faults: Faults;
  readonly log: RequestLog;
  readonly lessons: Lessons;
}

/** A page for people: which companies granted access, buttons to revoke it, and a button that resets the data. */
export function controlRoutes(app: FastifyInstance, controls: Controls): void {
  const { world, grants } = controls;
  app.get('/sandbox/', (_request, reply) => sendPage(reply, 200, controlPage(controls)));
  app.post('/sandbox/companies/:company_id/revoke', (request, reply) => {
    const { companyId = '' } = visitOf(request).entry;
    if (!world.companies.has(companyId)) throw new Refusal(404, 'not_found', 'There is no such company.');
    grants.revoke(companyId);
    return redirect(reply, '/sandbox/');
  });
  app.post('/sandbox/reset', (_request, reply) => {
    resetSandbox(controls);
    return redirect(reply, '/sandbox/');
  });
}

/** Restores the lists of the seed, ends lessons and faults, and empties the log. Authorizations stay. */
export function resetSandbox({ world, faults, log, lessons }: Controls): void {
  lessons.mend();
  world.reset();
  faults.clear();
  log.clear();
}

function controlPage({ world, grants }: Controls): string {
  const rows = [...world.companies.values()].map(({ companyId, name }) => {
    const state = grants.authorization(companyId);
    const revoke = `<form method="post" action="/sandbox/companies/${companyId}/revoke"><button>Revoke</button></form>`;
    return `<tr><td>${escapeHtml(name)}<br><small>${companyId}</small></td><td class="number">${world.list(companyId, 'employees').size}</td>
<td>${state}</td><td>${state === 'authorized' ? revoke : ''}</td></tr>`;
  });
  return htmlPage(
    'Sandbox',
    `<h1>Sandbox</h1>
<p class="quiet">A made-up provider: authorization server and API at one address.</p>
<table><thead><tr><th>Company</th><th class="number">Employees</th><th>Access</th><th></th></tr></thead>
<tbody>
${rows.join('\n')}
</tbody></table>
<div class="row"><form method="post" action="/sandbox/reset"><button>Reset data, faults and log</button></form></div>`,
  );
}
