module stepladder/causes

go 1.26.0
