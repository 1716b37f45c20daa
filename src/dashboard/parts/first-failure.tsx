import type { CompanyModel } from '../../api/companies/company-model.js';
import { failureLine, type RunFailure } from '../../api/runs/run-failure.js';
import type { RunModel } from '../../api/runs/run-model.js';
import { adviceFor } from '../../core/advice.js';
import { CodeHint, Link, numberText, ServiceSays, State, When } from './shown-values.js';

export function isOver({ status }: Pick<RunModel, 'status'>): boolean {
  return status !== 'queued' && status !== 'running';
}

interface FirstFailureProps {
  readonly run: RunModel;
  /** The company as it is now; undefined if it was removed. */
  readonly company: CompanyModel | undefined;
  readonly failure: RunFailure;
}

/** The list that failed first, why, and what happens next. */
export function FirstFailure({ run, company, failure }: FirstFailureProps) {
  const { code, message, resource, service_says } = failure;
  const proved = company?.resources.find((list) => list.resource === resource)?.last_verified_at;
  return (
    <section class={`notice ${isOver(run) ? 'bad' : 'warn'}`} aria-labelledby="failure">
      <h2 id="failure">{upperFirst(failureLine(failure))}</h2>
      <ServiceSays sentence={service_says} />
      <p>{message}</p>
      <Next run={run} company={company} proved={proved} code={code} />
      <CodeHint code={code} />
    </section>
  );
}

interface NextProps extends Omit<FirstFailureProps, 'failure'> {
  readonly proved: string | null | undefined;
  readonly code: string;
}

function Next({ run, company, proved, code }: NextProps) {
  const advice = adviceFor(code);
  if (run.retry_at)
    return (
      <p>
        Attempt {numberText(run.attempts)} failed. The run tries again <When at={run.retry_at} />.
      </p>
    );
  if (!isOver(run)) return <p>The run goes on with its other lists, and tries this one again after them.</p>;
  if (run.company_removed) return <p>The company was removed since, so nothing is to be done.</p>;
  if (proved && run.finished_at && proved > run.finished_at)
    return (
      <p>
        A later run has proved this list complete: <When at={proved} />.
      </p>
    );
  return (
    <>
      {advice && <p>{advice}</p>}
      {company && company.status !== 'active' && (
        <p>
          <State of={company.status} /> The company is not synced:{' '}
          <Link to={`/companies/${company.environment}/${company.company_id}`}>see the company</Link>.
        </p>
      )}
    </>
  );
}

/** Names of lists stay as they are. */
function upperFirst(text: string): string {
  return text.includes(':') ? text : text.charAt(0).toUpperCase() + text.slice(1);
}

export function Failure({ code, message }: { readonly code: string; readonly message: string }) {
  const advice = adviceFor(code);
  return (
    <div class="notice bad">
      <p>{message}</p>
      {advice && <p>{advice}</p>}
      <CodeHint code={code} />
    </div>
  );
}
