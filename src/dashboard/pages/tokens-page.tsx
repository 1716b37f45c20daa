import type { NamedTokenModel } from '../../api/operation/named-tokens.js';
import { ROLES } from '../../db/tables/named-tokens.js';
import { ActionForm, AsCommands, get, useCommands, useMay } from '../parts/action-form.js';
import { Copyable } from '../parts/copyable.js';
import { type Column, column, DataTable } from '../parts/data-table.js';
import { Field, Select } from '../parts/fields.js';
import type { PageContent } from '../parts/layout.js';
import { filtersOf, type ListResponse, listAddress, Pages } from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import { Link, When } from '../parts/shown-values.js';

const RIGHTS = {
  viewer: 'reads',
  operator: 'reads, syncs, cancels, pauses, resumes, decides holds, makes connect links',
  admin: 'everything',
} as const;

export async function tokensPage({ ask, query }: PageRequest): Promise<PageContent> {
  const list = await ask<ListResponse<NamedTokenModel>>(listAddress('/api/tokens', filtersOf(query, ['cursor'])));
  return { title: 'Tokens', body: <Tokens list={list} /> };
}

function Tokens({ list }: { readonly list: ListResponse<NamedTokenModel> }) {
  const may = useMay();
  const [first] = list.data;
  const make = useCommands(['token.create'], { name: 'night watch', role: 'viewer' });
  const withdraw = useCommands(first ? ['token.delete'] : [], { id: first?.id ?? '' });
  return (
    <>
      <h1>Tokens</h1>
      <p class="lead">People and programs that may use the API and this control room. A session ends with its token.</p>
      <DataTable
        caption="Tokens, their roles and when they end"
        rows={list.data}
        keyOf={({ id }) => id}
        empty="There is no named token yet: everyone uses the admin token."
        columns={may('token.delete') ? [...COLUMNS, WITHDRAW] : COLUMNS}
      />
      <Pages path="/tokens" filters={{}} next={list.next_cursor} />
      {may('token.create') && <NewToken />}
      <AsCommands
        commands={[
          get('This list', '/api/tokens'),
          ...make,
          ...withdraw.map((command) => ({ ...command, label: 'Withdraw, here for the first of the list' })),
        ]}
      />
    </>
  );
}

const COLUMNS: readonly Column<NamedTokenModel>[] = [
  column('Name', ({ id, name }) => <b id={`token-${id}`}>{name}</b>),
  column('Role', ({ role }) => role),
  column('Made', ({ created_at, created_by }) => (
    <>
      <When at={created_at} /> <small class="why">by {created_by}</small>
    </>
  )),
  column('Ends', ({ expires_at }) => <When at={expires_at} />),
  column('Last used', ({ last_used_at }) => <When at={last_used_at} />),
];

const WITHDRAW = column<NamedTokenModel>('Withdraw', ({ id }) => (
  <ActionForm name="token.delete" fields={{ id }} describedBy={`token-${id}`} />
));

function NewToken() {
  return (
    <section class="card narrow" aria-labelledby="new-token">
      <h2 id="new-token">A new token</h2>
      <ActionForm name="token.create" fields={{}}>
        <Field label="Name">
          <input type="text" name="name" required maxLength={100} />
        </Field>
        <Select label="Role" name="role" options={ROLES.map((role) => [role, `${role}: ${RIGHTS[role]}`])} />
        <Field label="Ends on, if ever">
          <input type="date" name="expires_at" />
        </Field>
      </ActionForm>
    </section>
  );
}

/** The new token, which is shown only once. */
export function tokenPage(
  { token, name, role }: { readonly token: string; readonly name: string; readonly role: string },
  back: string,
): PageContent {
  const body = (
    <div class="card narrow">
      <h1>The token of {name} is made</h1>
      <p>It has the role {role}. Copy it now: it is shown only once, and Muster stores only its hash.</p>
      <Copyable label="Token" value={token} />
      <p>
        <Link to={back}>Back</Link>
      </p>
    </div>
  );
  return { title: 'The token', body };
}
