# Steps through a program's `sum` and counts the places from which a debugger does
# not find `main`.
set pagination off
set confirm off
set debuginfod enabled off
break sum
run
delete
python
lost = steps = 0
while steps < 1500:
    names = []
    frame = gdb.newest_frame()
    while frame:
        names.append(frame.name())
        try:
            frame = frame.older()
        except gdb.error:
            break
    if names[0] == 'main':
        break
    if 'main' not in names:
        lost += 1
        print('lost at', gdb.execute('x/i $pc', to_string=True))
    steps += 1
    gdb.execute('stepi', to_string=True)
print('lost', lost, 'of', steps)
end
kill
