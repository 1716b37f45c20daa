import type { ApiResponse } from '../../api/plumbing/in-process-api.js';
import { adviceFor } from '../../core/advice.js';
import { type ErrorCode, MusterError } from '../../core/errors.js';
import type { PageContent } from '../parts/layout.js';
import { CodeHint, Link } from '../parts/shown-values.js';

/** A problem of the API, as pages show it. */
export interface ShownProblem {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
}

/** The problem in a response, as an error with the members of `ShownProblem`. */
export function problemIn({ body }: ApiResponse): MusterError & ShownProblem {
  const { code = 'internal_error', detail = 'The API did not say why.' } = (body ?? {}) as { code?: ErrorCode; detail?: string };
  return Object.assign(new MusterError(code, detail), { detail });
}

const TITLES: Readonly<Record<number, string>> = { 401: 'Signed out', 403: 'Not allowed', 404: 'Not found' };

/** Titles for missing things, and the page that lists the existing ones. */
const MISSING: Readonly<Record<string, readonly [title: string, path: string, list: string]>> = {
  company_not_found: ['No such company', '/companies', 'To the companies'],
  run_not_found: ['No such run', '/runs', 'To the runs'],
  hold_not_found: ['No such hold', '/holds', 'To the holds'],
  certificate_not_found: ['No such certificate', '/certificates', 'To the certificates'],
  notification_not_found: ['No such notification', '/notifications', 'To the notifications'],
  token_not_found: ['No such token', '/tokens', 'To the tokens'],
  not_found: ['No such page', '/', 'To the overview'],
};

/** A page for a problem: the cause, what to do next, and a way back. `back`: the page that had the form. */
export function problemPage({ status, code, detail }: ShownProblem, back?: string): PageContent {
  const [missing, list, listName] = MISSING[code] ?? [undefined, '/', 'To the overview'];
  const title = missing ?? TITLES[status] ?? 'That did not work';
  const advice = adviceFor(code);
  return {
    title,
    status,
    body: (
      <div class="card narrow">
        <h1>{title}</h1>
        <p role="alert">{detail}</p>
        {advice && <p class="hint">{advice}</p>}
        <CodeHint code={code} />
        <p>{back === undefined ? <Link to={list}>{listName}</Link> : <Link to={back}>Back</Link>}</p>
      </div>
    ),
  };
}
