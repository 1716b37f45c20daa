import type { ComponentChildren } from 'preact';
import type { VerifyModel, WalkModel } from '../../api/runs/run-model.js';
import { numberText, State, When } from './shown-values.js';

/** One list of a run that verifies: how far it is, and what it found. */
export function ReadingCard({ walk, children }: { readonly walk: WalkModel; readonly children: ComponentChildren }) {
  const { resource, status, received, pages, verify } = walk;
  return (
    <section class="card walk" aria-labelledby={`list-${resource}`} data-walk={resource}>
      <h3 id={`list-${resource}`}>
        {resource} <State of={status} />
      </h3>
      <dl class="counts">
        {(
          [
            ['received', received],
            ['pages', pages],
          ] as const
        ).map(([name, count]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <span data-count={name}>{numberText(count)}</span>
            </dd>
          </div>
        ))}
        {verify &&
          verify.as_of !== null &&
          FAULTS.map((name) => (
            <div key={name} class={verify[name] > 0 ? 'bad' : undefined}>
              <dt>{name}</dt>
              <dd>{numberText(verify[name])}</dd>
            </div>
          ))}
      </dl>
      {verify && <Found found={verify} />}
      {children}
    </section>
  );
}

const FAULTS = ['missing', 'extra', 'different'] as const;

/** What was found, in plain words. */
function Found({ found }: { readonly found: VerifyModel }) {
  const { as_of, changed_since, held, sample, contradiction } = found;
  if (as_of === null) return <p class="proof warn">Never proved: there is nothing to hold the mirror of this list against.</p>;
  const faults = FAULTS.reduce((sum, name) => sum + found[name], 0);
  return (
    <>
      <p class={`proof ${faults === 0 ? 'good' : 'bad'}`}>
        {faults === 0
          ? 'The mirror holds what was received, no more and no less.'
          : `${numberText(faults)} ${faults === 1 ? 'row is' : 'rows are'} not as received: somebody wrote to the mirror, or it was restored. A full resync mends it.`}
      </p>
      {contradiction && <p class="proof bad">The list may not end where it was taken to: {contradiction}.</p>}
      {sample.length > 0 && (
        <ul>
          {sample.map(({ id, kind, members = [] }) => (
            <li key={`${kind} ${id}`}>
              <span class="id">{id}</span> is {kind}
              {members.length > 0 && ` in ${members.join(', ')}`}
            </li>
          ))}
        </ul>
      )}
      <p class="hint">
        Judged by the proof of <When at={as_of} />.{' '}
        {changed_since > 0 && `${numberText(changed_since)} records changed upstream since. `}
        {held > 0 && `${numberText(held)} rows are kept by a hold.`}
      </p>
    </>
  );
}
