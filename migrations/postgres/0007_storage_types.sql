-- Storage settings say which kind of store they are for. All warehouses so far lie in local files, which have none.

UPDATE warehouse SET storage = '{"type":"file"}';
