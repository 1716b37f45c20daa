import createClient from 'openapi-fetch';
import type { components, paths } from './api.js';

// A program of somebody who has the document of the admin API and nothing else of Muster: `./api.js` is what openapi-typescript makes of it.
// The test compiles both under the strict compiler, so that a call or a member that the document does not describe is an error.

type Run = components['schemas']['Run'];
type Hold = components['schemas']['Hold'];

export interface Journey {
  readonly onboarded: components['schemas']['Company'];
  /** The code of the problem with which the same company is refused a second time. */
  readonly again: components['schemas']['Problem']['code'];
  readonly first: Run;
  /** The sync after the service has lost most of a list. */
  readonly second: Run;
  readonly held: Hold;
  readonly approved: Hold;
  readonly changes: components['schemas']['Change'][];
}

/** Onboards a company, waits for its first sync, and after `lose` syncs it again and approves the deletions that are held back. */
export async function travel(given: {
  readonly url: string;
  readonly token: string;
  readonly companyId: string;
  readonly refreshToken: string;
  readonly lose: () => void;
}): Promise<Journey> {
  const api = createClient<paths>({ baseUrl: given.url, headers: { authorization: `Bearer ${given.token}` } });
  const company = { environment: 'test', company_id: given.companyId } as const;
  const body = { ...company, refresh_token: given.refreshToken };

  const { data: onboarded, error: refusal } = await api.POST('/api/companies', { body });
  if (!onboarded) throw new Error(`${refusal.code}: ${refusal.detail}`);
  const { error: secondRefusal } = await api.POST('/api/companies', { body });
  const { data: runs } = await api.GET('/api/runs', { params: { query: { company_id: given.companyId, limit: 1 } } });
  const first = await ended(runs?.data[0]);

  given.lose();
  const { data: asked } = await api.POST('/api/companies/{environment}/{company_id}/sync', {
    params: { path: company },
    body: { mode: 'full' },
  });
  const second = await ended(asked?.run);

  const { data: holds } = await api.GET('/api/holds', { params: { query: { status: 'open', environment: 'test' } } });
  const [held] = holds?.data ?? [];
  if (!held) throw new Error('Nothing is held back.');
  const { data: approved, error: noApproval } = await api.POST('/api/holds/{id}/approve', { params: { path: { id: held.id } } });
  if (!approved) throw new Error(`${noApproval.code}: ${noApproval.detail}`);

  const changes: Journey['changes'] = [];
  for (let after = '0', more = true; more; ) {
    const { data: page } = await api.GET('/api/changes', { params: { query: { after, resource: held.resource, limit: 1_000 } } });
    // It may be lines, too, for whoever asks for them.
    if (typeof page !== 'object') throw new Error('The feed cannot be read.');
    changes.push(...page.data);
    more = String(page.next_after) !== after;
    after = String(page.next_after);
  }
  return { onboarded, again: secondRefusal?.code ?? 'none', first, second, held, approved, changes };

  async function ended(run: Run | undefined): Promise<Run> {
    if (!run) throw new Error('There is no run.');
    if (run.status !== 'queued' && run.status !== 'running') return run;
    await new Promise((resolve) => setTimeout(resolve, 100));
    const { data } = await api.GET('/api/runs/{id}', { params: { path: { id: run.id } } });
    return ended(data);
  }
}
