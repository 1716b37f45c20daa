import type { NamedTokenModel } from '../../api/operation/named-tokens.js';
import { ROLES, TOKEN_ORDERS, type TokenOrder } from '../../db/tables/named-tokens.js';
import { ActionForm, useCommands, useMay } from '../parts/action-form.js';
import { Copyable } from '../parts/copyable.js';
import { type Column, column } from '../parts/data-table.js';
import { Field, Select } from '../parts/fields.js';
import type { PageContent } from '../parts/layout.js';
import { choice, FoundTable, type ListProps, listPage, search } from '../parts/list-page.js';
import { Link, When } from '../parts/shown-values.js';
import { useHere } from '../parts/view.js';

const RIGHTS = {
  viewer: 'reads',
  operator: 'reads, syncs, cancels, pauses, resumes, decides holds, makes connect links',
  admin: 'everything',
} as const;

const ORDERS: Readonly<Record<TokenOrder, string>> = {
  made: 'newest first',
  name: 'A to Z',
  role: 'viewers first',
  expires: 'soonest end first',
  last_used: 'longest unused first',
};
const OTHER_ORDERS = TOKEN_ORDERS.filter((order) => order !== 'made');
const DIRECTION = choice('Direction', ['desc'], { none: 'as named', textOf: () => 'reversed' });

export const tokensPage = listPage<NamedTokenModel>({
  path: '/tokens',
  title: 'Tokens',
  limit: 50,
  Head: () => (
    <>
      <h1>Tokens</h1>
      <p class="lead">People and programs that may use the API and this control room. A session ends with its token.</p>
      <NewToken />
    </>
  ),
  filters: {
    q: search('Find a token', 100, { placeholder: 'part of the name' }),
    sort: choice('Order', OTHER_ORDERS, { none: ORDERS.made, textOf: (order) => ORDERS[order as TokenOrder] }),
    order: (name, filters) => (filters.sort === undefined ? null : DIRECTION(name, filters)),
  },
  label: 'Tokens found',
  Items: Tokens,
  useFurtherCommands: ({
    list: {
      data: [first],
    },
  }) => [
    ...useCommands(['token.create'], { name: 'night watch', role: 'viewer' }),
    ...useCommands(first ? ['token.delete'] : [], { id: first?.id ?? '' }).map((command) => ({
      ...command,
      label: 'Withdraw, here for the first of the list',
    })),
  ],
});

function Tokens(found: ListProps<NamedTokenModel>) {
  return (
    <FoundTable
      {...found}
      caption="Tokens, their roles and when they end"
      columns={useMay()('token.delete') ? [...COLUMNS, WITHDRAW] : COLUMNS}
      empty={['No token matches.', 'There is no named token yet: everyone uses the admin token.']}
    />
  );
}

const COLUMNS: readonly Column<NamedTokenModel>[] = [
  column('Name', ({ id, name }) => <b id={`token-${id}`}>{name}</b>, { sort: 'name' }),
  column('Role', ({ role }) => role, { sort: 'role' }),
  column('Made', ({ created_at, created_by }) => (
    <>
      <When at={created_at} /> <small class="why">by {created_by}</small>
    </>
  )),
  column('Ends', ({ expires_at }) => <When at={expires_at} />, { sort: 'expires' }),
  column('Last used', ({ last_used_at }) => <When at={last_used_at} />, { sort: 'last_used' }),
];

const WITHDRAW = column<NamedTokenModel>('Withdraw', ({ id }) => <Withdraw id={id} />);

function Withdraw({ id }: { readonly id: string }) {
  return <ActionForm name="token.delete" fields={{ id }} back={useHere()} describedBy={`token-${id}`} />;
}

function NewToken() {
  if (!useMay()('token.create')) return null;
  return (
    <section class="card new-token" aria-labelledby="new-token">
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
      <p class="hint">
        A viewer sees every page and changes nothing; names and other values of records are shown to operators and admins. To read
        the tables in SQL, give a role of the database the right: <code>muster migrate --grant ROLE</code>.
      </p>
    </section>
  );
}

/** The new token, which is shown only once. */
export function tokenPage(
  { id, token, name, role }: Readonly<Record<'id' | 'token' | 'name' | 'role', string>>,
  back: string,
): PageContent {
  const body = (
    <div class="card narrow">
      <h1>The token of {name} is made</h1>
      <p>It has the role {role}. Copy it now: it is shown only once, and Muster stores only its hash.</p>
      <Copyable label="Token" value={token} />
      <p>It works until it is withdrawn, here or next to its name in the list. That ends its sessions, too.</p>
      <div class="actions">
        <ActionForm name="token.delete" fields={{ id }} back={back} />
      </div>
      <p>
        <Link to={back}>Back</Link>
      </p>
    </div>
  );
  return { title: 'The token', body };
}
