package store

import "context"

// Exec runs SQL as no other code may.
func (s *Store) Exec(ctx context.Context, sql string) error {
	_, err := s.write.ExecContext(ctx, sql)
	return err
}

// Text asks for one text.
func (s *Store) Text(ctx context.Context, sql string) (text string, err error) {
	err = s.read.QueryRowContext(ctx, sql).Scan(&text)
	return text, err
}
