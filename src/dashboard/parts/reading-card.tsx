import type { ComponentChildren } from 'preact';
import type { VerifyModel, WalkModel } from '../../api/runs/run-model.js';
import { ShownStatus } from './shown-status.js';
import { Fact, numberText, When } from './shown-values.js';

/** The progress and findings of one list in a verification run. */
export function ReadingCard({ walk, children }: { readonly walk: WalkModel; readonly children: ComponentChildren }) {
  const { received, pages, verify } = walk;
  return (
    <ListSection walk={walk}>
      <dl class="counts">
        <Count name="received" count={received} />
        <Count name="pages" count={pages} />
        {verify &&
          verify.as_of !== null &&
          FAULTS.map((name) => (
            <Fact key={name} name={name} isBad={verify[name] > 0}>
              {numberText(verify[name])}
            </Fact>
          ))}
      </dl>
      {verify && <Found found={verify} />}
      {children}
    </ListSection>
  );
}

interface ListSectionProps {
  readonly walk: WalkModel;
  readonly children: ComponentChildren;
}

/** One list of a run. */
export function ListSection({ walk, children }: ListSectionProps) {
  const { resource } = walk;
  return (
    <section class="card walk" aria-labelledby={`list-${resource}`} data-walk={resource}>
      <h3 id={`list-${resource}`}>
        {resource} <ShownStatus of={walk} />
      </h3>
      {children}
    </section>
  );
}

interface CountProps {
  readonly name: string;
  readonly count: number;
  readonly isBad?: boolean;
  readonly children?: ComponentChildren;
}

/** A count that the script of the page updates while the run goes on. */
export function Count({ name, count, isBad, children }: CountProps) {
  return (
    <Fact name={name} isBad={isBad}>
      <span data-count={name}>{numberText(count)}</span>
      {children}
    </Fact>
  );
}

const FAULTS = ['missing', 'extra', 'different'] as const;

function Found({ found }: { readonly found: VerifyModel }) {
  const { as_of, changed_since, held, sample, contradiction } = found;
  if (as_of === null)
    return <p class="proof warn">This list was never proved, so there is no proof to compare its mirror with.</p>;
  const faults = FAULTS.reduce((sum, name) => sum + found[name], 0);
  return (
    <>
      <p class={`proof ${faults === 0 ? 'good' : 'bad'}`}>
        {faults === 0
          ? 'The mirror holds what was received, no more and no less.'
          : `${numberText(faults)} ${faults === 1 ? 'row is' : 'rows are'} not as received: another program wrote to the mirror, or it was restored. A full resync repairs it.`}
      </p>
      {contradiction && <p class="proof bad">The list may go on after its supposed end: {contradiction}.</p>}
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
        Compared with the proof of <When at={as_of} />.{' '}
        {changed_since > 0 && `${numberText(changed_since)} records changed upstream since. `}
        {held > 0 && `A hold keeps ${numberText(held)} rows.`}
      </p>
    </>
  );
}
