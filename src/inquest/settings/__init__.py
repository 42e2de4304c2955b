"""Every setting and its default, a module for each group; `settings` reads them all. Everything else quotes them."""
